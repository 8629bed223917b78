#!/usr/bin/env python3
"""Writes tokens.json: what llama.cpp's tokenizer gives for strings.py, by pre-tokenizer name, over SmolLM2's vocabulary.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install llama-cpp-python
    /tmp/peer/bin/python tests/oracle/make_tokens.py models/SmolLM2-135M-Instruct.Q4_1.gguf tests/oracle/tokens.json

For each name the first 10 hex digits of the SHA-1 of each string's ids ("1 2 3"), special tokens parsed, no BOS.
"""
import ctypes, hashlib, json, pathlib, sys, tempfile
import llama_cpp
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from strings import all_strings, bad
from vocab import vocabulary_only

NAMES = ["gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon", "starcoder", "refact", "command-r", "mpt",
         "glm4", "chatglm-bpe", "gpt-4o", "tekken"]


def digest(ids):
    return hashlib.sha1(" ".join(map(str, ids)).encode()).hexdigest()[:10]


def main():
    model, out = sys.argv[1:3]
    result = {"llama_cpp_python": llama_cpp.__version__, "names": {}}
    with tempfile.TemporaryDirectory() as tmp:
        for name in NAMES:
            path = f"{tmp}/{name}.gguf"
            vocabulary_only(model, path, {"tokenizer.ggml.pre": name})
            params = llama_cpp.llama_model_default_params()
            params.vocab_only = True
            m = llama_cpp.llama_model_load_from_file(path.encode(), params)
            if not m:
                print(f"llama.cpp does not know {name}", file=sys.stderr)
                continue
            vocab = llama_cpp.llama_model_get_vocab(m)
            digests = []
            for s in all_strings():
                if bad(s):  # llama.cpp ends the process at some of these; test_tokens.py has another reference for them
                    digests.append("-")
                    continue
                buffer = (llama_cpp.llama_token * (len(s) + 16))()
                n = llama_cpp.llama_tokenize(vocab, s, len(s), buffer, len(buffer), False, True)
                digests.append(digest(list(buffer[:n])))
            result["names"][name] = " ".join(digests)
            llama_cpp.llama_model_free(m)
    json.dump(result, open(out, "w"), indent=0)


main()
