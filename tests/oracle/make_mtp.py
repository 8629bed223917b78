#!/usr/bin/env python3
"""Trains a tiny llama with a multi-token-prediction block on text.txt, and writes what an independent reference drafts with it.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch transformers gguf numpy
    /tmp/oracle/bin/python tests/oracle/make_mtp.py tests/oracle/models build/skipstone

mtp.gguf: the model with the block in its file. mtp_target.gguf and mtp_sidecar.gguf: the same in two files; the sidecar's draft vocabulary is trimmed. mtp.json: a prompt, its
greedy continuation, and for each of its positions the three tokens that the block drafts greedily (float64; the block written out below in torch).
"""
import json, pathlib, subprocess, sys
import gguf, numpy as np, torch
import torch.nn.functional as F
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_models as mm

OUT = pathlib.Path(sys.argv[1])
D, FF, HEADS, KV, LAYERS, EPS, BASE = 64, 128, 4, 2, 2, 1e-5, 10000.0
HD = D // HEADS
TOKENS, MERGES = mm.vocabulary()
V = len(TOKENS)


def encode(text):
    """Bytes as tokens, and the merges of the vocabulary in order."""
    alphabet = mm.byte_alphabet()
    ids = {t: i for i, t in enumerate(TOKENS)}
    ranks = {tuple(m.split(" ")): i for i, m in enumerate(MERGES)}
    import regex
    out = []
    for word in regex.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text):
        s = [alphabet[b] for b in word.encode()]
        while len(s) > 1:
            rank, at = min((ranks.get(p, 1 << 30), i) for i, p in enumerate(zip(s, s[1:])))
            if rank == 1 << 30:
                break
            s[at : at + 2] = [s[at] + s[at + 1]]
        out += [ids[x] for x in s]
    return out


def norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


def rope(x):
    """Halves convention; x [batch, time, heads, HD]."""
    t = torch.arange(x.shape[1], dtype=x.dtype)
    f = 1.0 / BASE ** (torch.arange(0, HD, 2, dtype=x.dtype) / HD)
    a = t[:, None] * f[None]
    c, s = a.cos()[None, :, None], a.sin()[None, :, None]
    u, v = x[..., : HD // 2], x[..., HD // 2 :]
    return torch.cat([u * c - v * s, v * c + u * s], -1)


def block(p, k, x):
    B, T, _ = x.shape
    h = norm(x, p[k + "attn_norm"])
    q, kk, v = (F.linear(h, p[k + n]).view(B, T, -1, HD) for n in ("attn_q", "attn_k", "attn_v"))
    q, kk = rope(q), rope(kk)
    kk, v = (t.repeat_interleave(HEADS // KV, 2) for t in (kk, v))
    a = F.scaled_dot_product_attention(q.transpose(1, 2), kk.transpose(1, 2), v.transpose(1, 2), is_causal=True)
    x = x + F.linear(a.transpose(1, 2).reshape(B, T, -1), p[k + "attn_output"])
    h = norm(x, p[k + "ffn_norm"])
    return x + F.linear(F.silu(F.linear(h, p[k + "ffn_gate"])) * F.linear(h, p[k + "ffn_up"]), p[k + "ffn_down"])


def hidden(p, ids):
    x = p["token_embd"][ids]
    for i in range(LAYERS):
        x = block(p, f"blk.{i}.", x)
    return norm(x, p["output_norm"])


def mtp(p, h, ids):
    """h: states before each token of ids (zeros before the first). The block's output after its norm."""
    k = f"blk.{LAYERS}."
    x = torch.cat([norm(p["token_embd"][ids], p[k + "nextn.enorm"]), norm(h, p[k + "nextn.hnorm"])], -1)
    return norm(block(p, k, F.linear(x, p[k + "nextn.eh_proj"])), p[k + "nextn.shared_head_norm"])


def parameters(gen):
    p = {"token_embd": torch.randn(V, D, generator=gen) * 0.5, "output_norm": torch.ones(D), "output": torch.randn(V, D, generator=gen) / 8}
    for i in range(LAYERS + 1):
        k = f"blk.{i}."
        for name, rows, cols in (("attn_q", D, D), ("attn_k", KV * HD, D), ("attn_v", KV * HD, D), ("attn_output", D, D), ("ffn_gate", FF, D), ("ffn_up", FF, D), ("ffn_down", D, FF)):
            p[k + name] = torch.randn(rows, cols, generator=gen) * cols ** -0.5 * (0.5 if name in ("attn_output", "ffn_down") else 1)
        p[k + "attn_norm"], p[k + "ffn_norm"] = torch.ones(D), torch.ones(D)
    k = f"blk.{LAYERS}.nextn."
    p[k + "eh_proj"] = torch.randn(D, 2 * D, generator=gen) * (2 * D) ** -0.5
    for n in ("enorm", "hnorm", "shared_head_norm"):
        p[k + n] = torch.ones(D)
    return {n: t.requires_grad_() for n, t in p.items()}


def train(ids):
    gen = torch.Generator().manual_seed(1)
    p = parameters(gen)
    optimizer = torch.optim.AdamW(p.values(), lr=4e-3, weight_decay=0.01)
    data, steps, length = torch.tensor(ids), 900, 96
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for step in range(steps):
        at = torch.randint(0, len(ids) - length - 3, (24,), generator=gen)
        x = torch.stack([data[a : a + length + 2] for a in at])
        h = hidden(p, x[:, :length])
        before = torch.cat([torch.zeros_like(h[:, :1]), h], 1)[:, : length + 1]
        y = mtp(p, before.detach(), x[:, : length + 1])
        loss = F.cross_entropy((h @ p["output"].T).flatten(0, 1), x[:, 1 : length + 1].flatten())
        draft = F.cross_entropy((y @ p["output"].detach().T).flatten(0, 1), x[:, 1 : length + 2].flatten())
        optimizer.zero_grad()
        (loss + draft).backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}, drafts {draft.item():.3f}", file=sys.stderr)
    return {n: t.detach() for n, t in p.items()}


def write(path, p, names, n_blocks, n_mtp, extra=None, head=True):
    w = gguf.GGUFWriter(path, "llama")
    w.add_name(path.stem)
    for add, value in ((w.add_context_length, 1024), (w.add_embedding_length, D), (w.add_block_count, n_blocks), (w.add_feed_forward_length, FF), (w.add_head_count, HEADS), (w.add_head_count_kv, KV),
                       (w.add_key_length, HD), (w.add_value_length, HD), (w.add_rope_dimension_count, HD), (w.add_layer_norm_rms_eps, EPS), (w.add_rope_freq_base, BASE)):
        add(value)
    if n_mtp:
        w.add_uint32("llama.nextn_predict_layers", n_mtp)
    for key, value in (extra or {}).items():
        w.add_string(key, value) if isinstance(value, str) else w.add_array(key, value)
    if head:
        w.add_vocab_size(V)
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("gpt-2")
        w.add_token_list(TOKENS)
        w.add_token_types([gguf.TokenType.CONTROL] * len(mm.SPECIALS) + [gguf.TokenType.NORMAL] * (V - len(mm.SPECIALS)))
        w.add_token_merges(MERGES)
        w.add_bos_token_id(0)
        w.add_eos_token_id(2)
        w.add_add_bos_token(False)
    for name in names:
        t = p[name].numpy()
        if t.ndim == 1:
            w.add_tensor(name + ".weight", t.astype(np.float32))
            continue
        if name.endswith("attn_q"):
            t = mm.permute(t, HEADS)
        if name.endswith("attn_k"):
            t = mm.permute(t, KV)
        w.add_tensor(name + ".weight", np.ascontiguousarray(t.astype(np.float16)))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def reference(p, prompt, n_new):
    """Greedy continuation, and the block's greedy drafts of three at each of its positions."""
    p = {n: t.double() for n, t in p.items()}
    ids, drafts = list(prompt), []
    for _ in range(n_new):
        h = hidden(p, torch.tensor(ids)[None])
        ids.append(int((h[0, -1] @ p["output"].T).argmax()))
        chain_ids, chain_h, chain = list(ids), torch.cat([torch.zeros_like(h[:, :1]), h], 1), []
        for _ in range(3):
            y = mtp(p, chain_h, torch.tensor(chain_ids)[None])
            chain.append(int((y[0, -1] @ p["output"].T).argmax()))
            chain_ids.append(chain[-1])
            chain_h = torch.cat([chain_h, y[:, -1:]], 1)
        drafts.append(chain)
    return ids[len(prompt) :], drafts


def main():
    text = (pathlib.Path(__file__).parent / "text.txt").read_text()
    p = train(encode(text))
    p = {n: t.half().float() if t.ndim > 1 else t for n, t in p.items()}
    target = [n for n in p if not n.startswith(f"blk.{LAYERS}.")]
    head = [n for n in p if n.startswith(f"blk.{LAYERS}.")]
    write(OUT / "mtp.gguf", p, list(p), LAYERS + 1, 1)
    write(OUT / "mtp_target.gguf", p, target, LAYERS, 0)
    # The sidecar's vocabulary: the 120 most frequent tokens.
    ids = encode(text)
    common = sorted(np.argsort(-np.bincount(ids, minlength=V))[:120].tolist())
    p[f"blk.{LAYERS}.nextn.shared_head_head"] = p["output"][common]
    head.append(f"blk.{LAYERS}.nextn.shared_head_head")
    inspected = subprocess.run([sys.argv[2], "inspect", OUT / "mtp_target.gguf", "--json"], check=True, capture_output=True).stdout
    fingerprint = json.loads(inspected)["fingerprint"]
    write(OUT / "mtp_sidecar.gguf", p, head, LAYERS + 1, 1, {"llama.nextn.model_fingerprint": fingerprint, "llama.nextn.draft_token_ids": common}, head=False)
    prompt = encode("And it came to pass in the days")
    tokens, drafts = reference(p, prompt, 60)
    hits = sum(drafts[i][0] == tokens[i + 1] for i in range(len(tokens) - 1)) / (len(tokens) - 1)
    print(f"first drafts accepted: {hits:.2f}")
    (OUT / "mtp.json").write_text(json.dumps({"text": "And it came to pass in the days", "prompt": prompt, "tokens": tokens, "drafts": drafts}) + "\n")


main()
