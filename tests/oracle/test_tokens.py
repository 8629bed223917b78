"""Token ids against independent implementations: llama.cpp for every pre-tokenizer name, SentencePiece for score-ordered merging."""
import hashlib, json, pathlib, struct, subprocess
import pytest
from strings import all_strings, bad
from vocab import vocabulary_only

HERE = pathlib.Path(__file__).parent
EXPECTED = json.loads((HERE / "tokens.json").read_text())["names"]


def tokenize(build, model, strings, special=True, add=False):
    data = b"".join(struct.pack("<I", len(s)) + s for s in strings)
    out = subprocess.run([build / "tests/tokenize_many", model, str(int(special)), str(int(add))], input=data, capture_output=True, check=True).stdout
    return out.decode().split("\n")[:-1]


def left_out(name, s):
    """Invalid UTF-8 ends llama.cpp, and it takes spaces beyond ASCII for \\v before it matches DeepSeek's ranges, which hold some (the model's own
    tokenizer.json, run by Hugging Face's tokenizers, splits " \\u200a " in three, as we do)."""
    return bad(s) or (name in ("deepseek-llm", "deepseek-coder") and any(c.isspace() and ord(c) >= 0x800 for c in s.decode()))


@pytest.mark.parametrize("name", EXPECTED)
def test_ids_equal_llama_cpp(build, smollm2, tmp_path, name):
    path = tmp_path / "vocab.gguf"
    vocabulary_only(smollm2, path, {"tokenizer.ggml.pre": name})
    strings, want = all_strings(), EXPECTED[name].split()
    got = [hashlib.sha1(line.encode()).hexdigest()[:10] for line in tokenize(build, path, strings)]
    assert len(strings) >= 1000 and len(got) == len(want) == len(strings)
    assert [s for s, a, b in zip(strings, got, want) if a != b and not left_out(name, s)] == []


def test_score_ordered_merging_equals_sentencepiece(build):
    strings = [s for s in all_strings() if not bad(s)]
    want = json.loads((HERE / "spm.json").read_text())
    got = tokenize(build, HERE / "spm.gguf", strings, special=False)
    assert [(s, a, b) for s, a, b in zip(strings, got, want) if a != b] == []


def reference_bpe(reader):
    """Byte-level BPE as the paper has it, with smollm's splitting: quadratic, and small enough to be seen to be right."""
    import regex
    values = lambda key: [bytes(reader.fields[key].parts[i]).decode() for i in reader.fields[key].data]
    ids = {t: i for i, t in enumerate(values("tokenizer.ggml.tokens"))}
    ranks = {tuple(m.split(" ")): i for i, m in enumerate(values("tokenizer.ggml.merges"))}
    keep = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    names = {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(rest)}}
    words = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

    def encode(data):
        out = []
        for part in regex.split(r"(\p{N})", data.decode(errors="surrogateescape")):
            for word in words.findall(part):
                symbols = [names[b] for b in word.encode(errors="surrogateescape")]
                while len(symbols) > 1:
                    rank, at = min((ranks.get(pair, 1 << 30), i) for i, pair in enumerate(zip(symbols, symbols[1:])))
                    if rank == 1 << 30:
                        break
                    symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
                out += [ids[s] for s in symbols if s in ids]  # SmolLM2 has no token for 13 bytes that UTF-8 never uses
        return out

    return encode


def test_invalid_utf8_gives_the_tokens_of_its_bytes(build, smollm2):
    gguf = pytest.importorskip("gguf")
    encode = reference_bpe(gguf.GGUFReader(smollm2))
    strings = [s for s in all_strings() if b"<|" not in s]
    assert sum(map(bad, strings)) >= 10
    got = tokenize(build, smollm2, strings, special=False)
    assert [s for s, a in zip(strings, got) if a != " ".join(map(str, encode(s)))] == []


def test_special_tokens_are_text_unless_asked_for(build, smollm2):
    s = [b"<|im_start|>user<|im_end|>"]
    assert tokenize(build, smollm2, s)[0].split()[0] == "1"
    assert "1" not in tokenize(build, smollm2, s, special=False)[0].split()


def test_cli_prints_the_same_ids(skipstone, build, smollm2):
    text = b"Hello\x00 world \xff\n\n"
    want = tokenize(build, smollm2, [text])[0]
    assert skipstone("tokenize", "-m", smollm2, input=text).stdout.decode().strip() == want
    assert json.loads(skipstone("tokenize", "-m", smollm2, "--json", input=text).stdout) == [int(t) for t in want.split()]
    assert json.loads(skipstone("tokenize", "-m", smollm2, "--json", input=b"").stdout) == []
