#!/usr/bin/env python3
"""Writes a llama model with random Q4_1 weights, for speed measurements only: bench/synthetic.py OUT.gguf [--gb SIZE]

No packages are needed. Blocks repeat after a megabyte (the hardware does not notice); the vocabulary is 256 bytes and numbered fillers.
"""
import argparse, random, struct

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("out")
parser.add_argument("--gb", type=float, default=1.0, help="about so many gigabytes of weights (default 1)")
args = parser.parse_args()

EMBD, HEADS, KV, HEAD, FF, VOCAB = 2048, 16, 4, 128, 5632, 32000
PER_LAYER = EMBD * (HEADS + 2 * KV) * HEAD + HEADS * HEAD * EMBD + 3 * EMBD * FF
BYTES = 20 / 32
layers = max(1, round((args.gb * 1e9 / BYTES - 2 * VOCAB * EMBD) / PER_LAYER))

rng = random.Random(1)
f16 = lambda x: struct.pack("<e", x)
block = lambda scale: f16(scale) + f16(-7.5 * scale) + rng.randbytes(16)
SAMPLE = {s: b"".join(block(s * rng.uniform(0.7, 1.3)) for _ in range(52429)) for s in (0.006, 0.004)}
string = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()


def value(key, kind, data):
    return string(key) + struct.pack("<I", kind) + data


def alphabet():
    keep = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    return [chr(b) for b in keep] + [chr(256 + i) for i in range(len(rest))]


tokens = ["<|end|>"] + alphabet()
tokens += [f"<filler{i}>" for i in range(VOCAB - len(tokens))]
u32, f32 = (lambda k, v: value(k, 4, struct.pack("<I", v))), (lambda k, v: value(k, 6, struct.pack("<f", v)))
strings = lambda k, v: value(k, 9, struct.pack("<IQ", 8, len(v)) + b"".join(map(string, v)))
metadata = [
    value("general.architecture", 8, string("llama")), value("general.name", 8, string(f"random, {layers} layers")), u32("llama.context_length", 4096), u32("llama.block_count", layers),
    u32("llama.embedding_length", EMBD), u32("llama.feed_forward_length", FF), u32("llama.attention.head_count", HEADS), u32("llama.attention.head_count_kv", KV),
    u32("llama.rope.dimension_count", HEAD), f32("llama.attention.layer_norm_rms_epsilon", 1e-5), value("tokenizer.ggml.model", 8, string("gpt2")), value("tokenizer.ggml.pre", 8, string("gpt-2")),
    strings("tokenizer.ggml.tokens", tokens), strings("tokenizer.ggml.merges", []),
    value("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, VOCAB) + struct.pack(f"<{VOCAB}i", 3, *[1] * (VOCAB - 1))), u32("tokenizer.ggml.eos_token_id", 0),
]
tensors = [("token_embd.weight", (EMBD, VOCAB), 0.006), ("output_norm.weight", (EMBD,), None), ("output.weight", (EMBD, VOCAB), 0.006)]
for i in range(layers):
    b = f"blk.{i}."
    tensors += [(b + "attn_norm.weight", (EMBD,), None), (b + "attn_q.weight", (EMBD, HEADS * HEAD), 0.004), (b + "attn_k.weight", (EMBD, KV * HEAD), 0.004), (b + "attn_v.weight", (EMBD, KV * HEAD), 0.004),
                (b + "attn_output.weight", (HEADS * HEAD, EMBD), 0.004), (b + "ffn_norm.weight", (EMBD,), None), (b + "ffn_gate.weight", (EMBD, FF), 0.004), (b + "ffn_up.weight", (EMBD, FF), 0.004),
                (b + "ffn_down.weight", (FF, EMBD), 0.004)]


def size(shape, scale):
    n = 1
    for d in shape:
        n *= d
    return n * 4 if scale is None else n // 32 * 20


with open(args.out, "wb") as f:
    f.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)) + b"".join(metadata))
    offset = 0
    for name, shape, scale in tensors:
        f.write(string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0 if scale is None else 3, offset))
        offset += (size(shape, scale) + 31) // 32 * 32
    for name, shape, scale in tensors:
        f.write(b"\0" * (-f.tell() % 32))
        n = size(shape, scale)
        if scale is None:
            f.write(struct.pack(f"<{shape[0]}f", *[1.0] * shape[0]))
            continue
        start = rng.randrange(len(SAMPLE[scale]) // 20) * 20
        turned = SAMPLE[scale][start:] + SAMPLE[scale][:start]
        while n > 0:
            f.write(turned[: min(n, len(turned))])
            n -= len(turned)
print(f"{args.out}: {layers} layers, {offset / 1e9:.2f} GB")
