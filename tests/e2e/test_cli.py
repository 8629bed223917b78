"""The command line as a user meets it."""
import json, os, pathlib, signal, subprocess, time
import pytest

COMMANDS = ["run", "chat", "inspect", "tokenize", "template", "bench", "perplexity", "exact"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_every_command(skipstone, command):
    out = skipstone(command, "--help").stdout.decode()
    assert out.startswith(f"usage: skipstone {command}") and "--help" in out
    assert command in skipstone("--help").stdout.decode()


@pytest.mark.parametrize("args, words", [
    (["nonsense"], "'nonsense' is not a command"), (["run", "--nonsense"], "--nonsense"), (["run", "-p", "x"], "-m FILE"), (["run", "-m", "/nowhere.gguf", "-p", "x"], "/nowhere.gguf"),
    (["run", "-m", "TINY"], "no prompt"), (["run", "-m", "TINY", "-p", "x", "-n", "0"], "max_tokens"), (["run", "-m", "TINY", "-p", "x", "-n", "many"], "'many'"),
    (["run", "-m", "TINY", "-p", "x", "--temperature", "-1"], "temperature"), (["run", "-m", "TINY", "-p", "x", "--logit-bias", "99999=1"], "99999"), (["run", "-m", "TINY", "-p", "x", "-t", "1000"], "1000 threads"),
    (["run", "-m", "TINY", "-p", "x", "--isa", "mmx"], "mmx"), (["run", "-m", "TINY", "-p", "x" * 900, "--raw", "-c", "64"], "context"), (["run", "-m", "TINY", "-p", "x", "-c", "99999999999"], "memory"),
    (["perplexity", "-m", "TINY"], "no text"), (["template", "-m", "TINY"], "no messages"), (["inspect"], "no file"),
])
def test_mistakes_are_answered_with_one_sentence(skipstone, tiny, args, words):
    p = skipstone(*[str(tiny) if a == "TINY" else a for a in args], check=False)
    assert p.returncode in (1, 2) and p.stdout == b""
    message = p.stderr.decode()
    assert message.startswith("skipstone: ") and message.count("\n") == 1 and words in message


def test_bad_files_give_one_sentence_and_status_1(skipstone, tiny, tmp_path):
    data = tiny.read_bytes()
    for i, bad in enumerate([b"", b"GGUF", b"not a model at all", data[:5000], data[:-100], data[:200] + b"\xff" * 200 + data[400:]]):
        path = tmp_path / f"{i}.gguf"
        path.write_bytes(bad)
        p = skipstone("inspect", path, check=False)
        assert p.returncode == 1 and p.stdout == b"" and p.stderr.count(b"\n") == 1, p
        assert b"gguf" in p.stderr.lower()


def test_run_streams_text_and_one_line_of_statistics(skipstone, tiny):
    p = skipstone("run", "-m", tiny, "-p", "the cat", "-n", 20, "--seed", 1, "--ignore-end")
    assert p.stdout.endswith(b"\n") and p.stderr.count(b"\n") == 1 and b"20 tokens" in p.stderr and b"seed 1" in p.stderr


def test_run_json_holds_everything(skipstone, tiny):
    o = json.loads(skipstone("run", "-m", tiny, "-p", "the cat", "-n", 20, "--seed", 1, "--json").stdout)
    assert len(o["tokens"]) == o["usage"]["completion_tokens"] <= 20
    assert o["usage"]["total_tokens"] == o["usage"]["prompt_tokens"] + o["usage"]["completion_tokens"]
    assert o["finish_reason"] in ("stop", "length") and isinstance(o["text"], str)
    assert o["timings"]["decode_tokens_per_s"] > 0 and o["timings"]["prefill_tokens_per_s"] > 0


def test_the_same_seed_gives_the_same_tokens_and_another_one_others(skipstone, tiny):
    tokens = [json.loads(skipstone("run", "-m", tiny, "-p", "the cat", "-n", 30, "--seed", s, "--ignore-end", "--json", *more).stdout)["tokens"]
              for s, more in [(5, []), (5, ["-t", "1"]), (5, ["--prefill-chunk", "3"]), (5, ["--isa", "scalar"]), (6, [])]]
    assert tokens[0] == tokens[1] == tokens[2] == tokens[3] != tokens[4]


def test_a_drawn_seed_is_shown_and_repeats_the_answer(skipstone, tiny):
    first = json.loads(skipstone("run", "-m", tiny, "-p", "the cat", "-n", 30, "--json").stdout)
    again = json.loads(skipstone("run", "-m", tiny, "-p", "the cat", "-n", 30, "--json", "--seed", first["seed"]).stdout)
    assert first["tokens"] == again["tokens"]


def test_every_byte_of_a_prompt_file_counts(skipstone, tiny, tmp_path):
    (tmp_path / "p").write_bytes(b"the cat\0and the \xff dog")
    o = json.loads(skipstone("run", "-m", tiny, "--raw", "-f", tmp_path / "p", "-n", 1, "--json").stdout)
    assert o["usage"]["prompt_tokens"] == len(skipstone("tokenize", "-m", tiny, input=(tmp_path / "p").read_bytes()).stdout.split())
    p = skipstone("run", "-m", tiny, "-f", tmp_path / "p", "-n", 1, check=False)
    assert p.returncode == 1 and b"UTF-8" in p.stderr


def test_stop_strings_end_the_text_before_them(skipstone, smollm2):
    args = ["run", "-m", smollm2, "-p", "One two three four five six seven eight", "--raw", "-n", 40, "--temperature", 0, "--json"]
    whole = json.loads(skipstone(*args).stdout)["text"]
    stop = whole[len(whole) // 2 : len(whole) // 2 + 4]
    cut = json.loads(skipstone(*args, "--stop", stop).stdout)
    assert cut["text"] == whole[: whole.index(stop)] and cut["finish_reason"] == "stop"


def test_the_answer_is_about_the_question(skipstone, smollm2):
    text = skipstone("run", "-m", smollm2, "-p", "What is the capital of France?", "-n", 60, "--seed", 3, "--temperature", 0.6).stdout.decode()
    assert "Paris" in text or "France" in text or "French" in text


def test_inspect_shows_tensors_by_type(skipstone, tiny):
    o = json.loads(skipstone("inspect", tiny, "--json").stdout)
    assert o["architecture"] == "llama" and o["runnable"] and o["tensor_types"]["Q4_1"]["tensors"] > 0 and o["memory"]["weight_bytes"] > 0
    assert "Q4_1" in skipstone("inspect", tiny).stdout.decode()


def test_bench_measures(skipstone, tiny):
    o = json.loads(skipstone("bench", "-m", tiny, "--json", "-r", 2).stdout)
    assert o["load_s"] > 0 and o["decode_tokens_per_s"] > 0
    assert list(o["pass_ms"]) == ["1", "2", "3", "4", "6", "8", "12", "16"] and list(o["prefill"]) == ["128", "512"]


def test_perplexity_is_llama_cpps_within_half_a_percent(skipstone, smollm2):
    folder = pathlib.Path(__file__).parent.parent / "oracle"
    want = json.loads((folder / "perplexity.json").read_text())
    got = json.loads(skipstone("perplexity", "-m", smollm2, "-f", folder / "text.txt", "--json", timeout=600).stdout)
    assert (got["tokens"], got["scored"]) == (want["tokens"], want["scored"])
    assert abs(got["perplexity"] / want["perplexity"] - 1) < 0.005


def test_unknown_pretokenizers_are_refused_by_name(skipstone, smollm2, tmp_path):
    from vocab import vocabulary_only
    vocabulary_only(smollm2, tmp_path / "v.gguf", {"tokenizer.ggml.pre": "martian"})
    p = skipstone("tokenize", "-m", tmp_path / "v.gguf", input=b"x", check=False)
    assert p.returncode == 1 and b"martian" in p.stderr
    assert skipstone("tokenize", "-m", tmp_path / "v.gguf", "--allow-unknown-pretokenizer", input=b"x").stdout


def test_chat_keeps_what_it_has_run_and_obeys_commands(skipstone, smollm2, tmp_path):
    saved = tmp_path / "talk.json"
    lines = f"My name is Ada.\nWhat is\\\nmy name?\n/stats\n/save {saved}\n/nonsense\n/reset\n/stats\n/quit\n"
    out = skipstone("chat", "-m", smollm2, "-n", 20, "--temperature", 0, input=lines.encode())
    talk = json.loads(saved.read_text())
    assert [m["role"] for m in talk] == ["user", "assistant"] * 2 and talk[2]["content"] == "What is\nmy name?"
    assert b"kept)" in out.stderr and b"2 answers" in out.stdout and b"'/nonsense' is not a command" in out.stdout and b"context 0 of" in out.stdout


def test_ctrl_c_ends_an_answer_cleanly(build, smollm2):
    p = subprocess.Popen([build / "skipstone", "run", "-m", smollm2, "-p", "Count to a million.", "-n", "5000", "--ignore-end"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(10)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=30)
    assert p.returncode == 130 and b"cancelled" in err and out.endswith(b"\n")


def test_a_closed_pipe_is_no_crash(build, smollm2):
    p = subprocess.Popen([build / "skipstone", "run", "-m", smollm2, "-p", "Hi", "-n", "200", "--ignore-end"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    p.wait(timeout=60)
    assert p.returncode >= 0
