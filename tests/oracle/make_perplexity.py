#!/usr/bin/env python3
"""Writes perplexity.json: llama.cpp's perplexity of SmolLM2 on text.txt, over the same tokens and windows as `skipstone perplexity`.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install llama-cpp-python
    /tmp/peer/bin/python tests/oracle/make_perplexity.py models/SmolLM2-135M-Instruct.Q4_1.gguf tests/oracle

text.txt is Ruth, Jonah and Ecclesiastes in the King James Version of 1769, in the public domain (Debian package bible-kjv-text).
"""
import ctypes, json, math, pathlib, sys
import llama_cpp, numpy as np

model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
WINDOW = 512
llm = llama_cpp.Llama(model, n_ctx=WINDOW, n_batch=WINDOW, n_threads=2, logits_all=True, verbose=False)
tokens = llm.tokenize((folder / "text.txt").read_bytes(), add_bos=True, special=False)
total, scored = 0.0, 0
for at in range(0, len(tokens) - WINDOW + 1, WINDOW):
    window = tokens[at : at + WINDOW]
    llm.reset()
    llm.eval(window)
    logits = llm.scores[WINDOW // 2 - 1 : WINDOW - 1].astype(np.float64)
    top = logits.max(axis=1)
    log_sum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    total += float((log_sum - logits[np.arange(len(logits)), window[WINDOW // 2 :]]).sum())
    scored += len(logits)
result = {"llama_cpp_python": llama_cpp.__version__, "window": WINDOW, "tokens": len(tokens), "scored": scored, "perplexity": math.exp(total / scored)}
(folder / "perplexity.json").write_text(json.dumps(result, indent=1) + "\n")
print(result)
