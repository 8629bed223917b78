"""Where sampling parameters come from: options, the file's recommendations, defaults; and a first answer worth reading."""
import json, os, pathlib, re, struct, subprocess
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

DEFAULTS = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, "repetition_penalty": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0, "penalty_window": 64}
KINDS = {float: (6, "<f"), int: (5, "<i")}


def pair(key, value):
    head = struct.pack("<Q", len(key)) + key.encode()
    if isinstance(value, str):
        return head + struct.pack("<IQ", 8, len(value)) + value.encode()
    kind, form = KINDS[type(value)]
    return head + struct.pack("<I", kind) + struct.pack(form, value)


def with_keys(source, target, **keys):
    """A copy of a GGUF file with more general.sampling.* keys: they go before the others, padded so that the rest keeps its alignment."""
    data = source.read_bytes()
    added = b"".join(pair("general.sampling." + k, v) for k, v in keys.items())
    padding = pair("test.padding", "x" * (-(len(added) + len(pair("test.padding", ""))) % 32))
    n_keys = struct.unpack_from("<Q", data, 16)[0] + len(keys) + 1
    target.write_bytes(data[:16] + struct.pack("<Q", n_keys) + added + padding + data[24:])
    return target


def sampling(skipstone, model, *more):
    p = skipstone("run", "-m", model, "--raw", "-p", "the cat", "-n", 4, "--json", *more)
    return json.loads(p.stdout)["sampling"], p.stderr.decode()


def test_without_keys_or_options_the_defaults_are_used(skipstone, tiny):
    got, errors = sampling(skipstone, tiny)
    assert got.pop("from") == {k: "default" for k in DEFAULTS} and got == DEFAULTS and errors == ""


def test_an_option_goes_before_the_file_and_the_file_before_the_defaults(skipstone, tiny, tmp_path):
    model = with_keys(tiny, tmp_path / "m.gguf", temp=0.6, top_k=20, top_p=0.9, min_p=0.0, penalty_repeat=1.1, penalty_last_n=-1, mirostat=0)
    got, errors = sampling(skipstone, model, "--top-k", 7)
    assert got.pop("from") == {"temperature": "file", "top_k": "option", "top_p": "file", "min_p": "file", "typical_p": "default", "repetition_penalty": "file",
                               "presence_penalty": "default", "frequency_penalty": "default", "penalty_window": "file"}
    assert got == {**DEFAULTS, "temperature": 0.6, "top_k": 7, "top_p": 0.9, "min_p": 0.0, "repetition_penalty": 1.1, "penalty_window": -1} and errors == ""


def test_the_file_s_values_are_those_that_draw(skipstone, tiny, tmp_path):
    model = with_keys(tiny, tmp_path / "m.gguf", temp=0.3, top_k=5)
    args = ["--raw", "-p", "the cat", "-n", 40, "--seed", 3, "--ignore-end", "--json"]
    tokens = [json.loads(skipstone("run", "-m", m, *args, *more).stdout)["tokens"] for m, more in
              [(model, []), (tiny, ["--temp", "0.3", "--top-k", "5"]), (tiny, [])]]
    assert tokens[0] == tokens[1] != tokens[2]


@pytest.mark.parametrize("key, value, words", [("temp", -3.0, "0 to 100"), ("temp", "hot", "a number"), ("top_p", 0, "at most 1"), ("top_k", 2.5, "whole numbers"), ("penalty_last_n", -7, "whole numbers")])
def test_an_impossible_value_in_the_file_is_named_and_not_used(skipstone, tiny, tmp_path, key, value, words):
    got, errors = sampling(skipstone, with_keys(tiny, tmp_path / "m.gguf", **{key: value}))
    assert set(got.pop("from").values()) == {"default"} and got == DEFAULTS
    assert errors.count("\n") == 1 and f"general.sampling.{key}" in errors and words in errors


def test_inspect_shows_the_keys_and_which_are_used(skipstone, tiny, tmp_path):
    model = with_keys(tiny, tmp_path / "m.gguf", temp=0.6, mirostat=2, sequence="kpt")
    text = skipstone("inspect", model).stdout.decode()
    assert re.search(r"general.sampling.temp = 0.6\n", text) and re.search(r"mirostat = 2(.0)? \(not used here\)", text)
    assert json.loads(skipstone("inspect", "--json", model).stdout)["sampling"] == {"general.sampling.temp": 0.6, "general.sampling.mirostat": 2, "general.sampling.sequence": "kpt"}


def test_chat_says_what_is_used(skipstone, smollm2):
    out = skipstone("chat", "-m", smollm2, "--temp", "0.2", input=b"/stats\n").stdout.decode()
    assert "sampling: temperature 0.2 (option), top-k 40 (default)" in out


def test_a_limit_of_minus_one_is_none(skipstone, tiny):
    got, _ = sampling(skipstone, tiny, "--top_k", "-1", "--repeat-last-n", "-1", "--seed", "-1")
    assert got["top_k"] == 0 and got["penalty_window"] == -1
    o = json.loads(skipstone("run", "-m", tiny, "--raw", "-p", "the cat", "-n", "-1", "-c", 64, "--ignore-end", "--json").stdout)
    assert o["usage"]["total_tokens"] == 64


@pytest.mark.parametrize("theirs, ours", [(["--temp", "0.5"], ["--temperature", "0.5"]), (["--n-predict", "3"], ["-n", "3"]), (["--ctx-size", "64"], ["-c", "64"]), (["--repeat-penalty", "1.3"], ["--repetition-penalty", "1.3"]),
                                          (["--repeat-last-n", "5"], ["--penalty-window", "5"]), (["--tempera=0.5"], ["--temperature", "0.5"]), (["--top_k", "3"], ["--top-k", "3"]), (["-temp", "0.5"], ["--temperature", "0.5"])])
def test_names_people_bring_along(skipstone, tiny, theirs, ours):
    args = ["run", "-m", tiny, "--raw", "-p", "the cat", "-n", 12, "--seed", 9, "--ignore-end", "--json"]
    a, b = (json.loads(skipstone(*args, *more).stdout) for more in (theirs, ours))
    assert a["tokens"] == b["tokens"] and a["sampling"] == b["sampling"]


def test_a_prompt_file_by_its_other_name(skipstone, tiny, tmp_path):
    (tmp_path / "p").write_text("the cat")
    assert json.loads(skipstone("run", "-m", tiny, "--raw", "--prompt-file", tmp_path / "p", "-n", 1, "--json").stdout)["usage"]["prompt_tokens"] > 1


@pytest.mark.parametrize("args, words", [
    (["-ngl", "99"], "-ngl is for GPUs"), (["--n-gpu-layers=3"], "--n-gpu-layers is for GPUs"), (["--gpu_layers", "3"], "is for GPUs"), (["--flash-attn", "on"], "attention"), (["--no-mmap"], "memory"),
    (["--temprature", "1"], "is --temperature meant"), (["--tempp", "1"], "is --temperature meant"), (["--jsno"], "is --json meant"), (["--spec-", "1"], "may mean --spec-"), (["--xyzzy"], "not known; --help"),
])
def test_what_cannot_be_meant_is_explained(skipstone, tiny, args, words):
    p = skipstone("run", "-m", tiny, "-p", "x", *args, check=False)
    assert p.returncode == 2 and p.stdout == b"" and p.stderr.count(b"\n") == 1 and words in p.stderr.decode()


def test_a_command_with_a_slip_is_named(skipstone):
    assert b"is 'inspect' meant" in skipstone("inpsect", "x", check=False).stderr


def test_the_parts_of_a_request_make_up_the_whole(skipstone, smollm2):
    for more in ([], ["--spec", "off"]):
        t = json.loads(skipstone("run", "-m", smollm2, "-p", "Count to ten.", "-n", 24, "--temperature", 0, "--json", *more).stdout)["timings"]
        parts = [t[k] for k in ("load_s", "prompt_s", "prefill_s", "decode_s", "commit_s", "other_s")]
        assert all(p >= 0 for p in parts) and abs(sum(parts) - t["total_s"]) < 1e-6
        assert t["other_s"] < 0.02 * t["total_s"] + 0.005  # nothing large without a name


@pytest.mark.parametrize("name", ["mtp", "draft", "prediction"])
def test_a_proposer_that_cannot_be_had_is_named_and_the_rest_goes_on(skipstone, tiny, name):
    args = ["run", "-m", tiny, "--raw", "-p", "the cat", "-n", 12, "--temperature", 0, "--ignore-end", "--json"]
    plain = json.loads(skipstone(*args, "--spec", "off").stdout)
    p = skipstone(*args, "--spec", name + ",suffix")
    o = json.loads(p.stdout)
    assert o["tokens"] == plain["tokens"] and list(o["timings"]["speculation"]["unavailable"]) == [name]
    assert p.stderr.count(b"\n") == 1 and f"without the proposer {name}".encode() in p.stderr
    assert plain["timings"]["speculation"]["unavailable"] == {} and skipstone(*args).stderr == b""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_quickstart_s_first_answer_is_right(smollm2, seed):
    """Of seeds 1 to 20 all name Paris; with the file's own system message 9 of 20 do, and llama.cpp's answers are no better."""
    env = {k: v for k, v in os.environ.items() if k != "SKIPSTONE_MODEL"}
    p = subprocess.run([ROOT / "quickstart", "--prompt", "What is the capital of France?", "--", "--seed", str(seed)], capture_output=True, env=env, timeout=300)
    assert p.returncode == 0 and b"Paris" in p.stdout, p


def test_quickstart_hands_options_on_and_leaves_other_models_alone(tiny):
    p = subprocess.run([ROOT / "quickstart", "--prompt", "the cat", "--max-tokens", "3", "--", "--json"], capture_output=True, env={**os.environ, "SKIPSTONE_MODEL": str(tiny)}, timeout=300)
    got = json.loads(p.stdout)["sampling"]
    assert set(got.pop("from").values()) == {"default"} and got == DEFAULTS


def test_bench_times_whole_processes(skipstone, smollm2, tmp_path):
    (tmp_path / "short.jsonl").write_text(json.dumps({"prompt": "Say yes.", "temperature": 0}) + "\n")
    o = json.loads(skipstone("bench", "--spec", "-m", smollm2, "--workloads", tmp_path, "-n", 4, "--wall-runs", 1, "--json").stdout)
    for row in (o["short"], o["all"]):
        assert list(row["wall"]) == ["16", "64", "256"] and all(w["off_s"] > 0 and w["auto_s"] > 0 for w in row["wall"].values())
        assert {"plain", "copy", "suffix", "cache", "auto"} <= set(row)
