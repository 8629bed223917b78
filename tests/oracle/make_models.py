#!/usr/bin/env python3
"""Writes tiny random llama models and the logits that transformers computes for them in float64.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch transformers gguf numpy
    /tmp/oracle/bin/python tests/oracle/make_models.py tests/oracle/models

For each model NAME: NAME.gguf, and NAME.logits, little-endian: int32 n_tokens, int32 n_vocab, int32 tokens[n_tokens], float32
logits[n_tokens][n_vocab]. Weights are rounded to the file's tensor type first, so both sides compute with the same values.
Made with torch 2.x, transformers 4.x/5.x, gguf 0.17 or later; the seed is fixed.
"""
import struct, sys, pathlib
import numpy as np, torch, gguf
from gguf.quants import quantize, dequantize
from transformers import LlamaConfig, LlamaForCausalLM

T = gguf.GGMLQuantizationType
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def byte_alphabet():
    keep = list(range(ord("!"), ord("~") + 1)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    extra = 0
    names = {}
    for b in range(256):
        if b in keep:
            names[b] = chr(b)
        else:
            names[b] = chr(256 + extra)
            extra += 1
    return [names[b] for b in range(256)]


def vocabulary():
    tokens = SPECIALS + byte_alphabet()
    merges = []
    for pair in ["t h", "th e", "i n", "a n", "e r", "o n", "Ġ t", "Ġt he", "Ġ a", "a t", "e n", "o u", "r e", "Ġ s", "i s", "o r", "in g", "an d", "Ġ w",
                 "e s", "Ġ o", "i t", "Ġ c", "Ġ b", "a l", "Ġ in", "e d", "Ġ and", "Ġ f"]:
        merges.append(pair)
        tokens.append(pair.replace(" ", ""))
    return tokens, merges


def permute(w, n_heads):
    """Rows of q and k so that rotated pairs are adjacent, as GGUF files of llama have them."""
    return w.reshape(n_heads, 2, w.shape[0] // n_heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def build(name, out, tensor_type=T.F16, tied=False, bias=False, rope=None, seed=0, **shape):
    tokens, merges = vocabulary()
    config = dict(vocab_size=len(tokens), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                  max_position_embeddings=512, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=tied, attention_bias=bias, mlp_bias=bias)
    config.update(shape)
    if rope:
        config["rope_scaling"] = dict(rope)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="eager")).double().eval()
    head_dim = model.config.head_dim
    w = gguf.GGUFWriter(out / f"{name}.gguf", "llama")
    w.add_name(f"tiny {name}")
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim)
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_rope_freq_base(config["rope_theta"])
    w.add_vocab_size(len(tokens))
    if rope and rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if rope and rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope and rope["rope_type"] == "llama3":
        base = 1.0 / (config["rope_theta"] ** (np.arange(0, head_dim, 2) / head_dim))
        w.add_tensor("rope_freqs.weight", (base / model.model.rotary_emb.inv_freq.double().numpy()).astype(np.float32))
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.CONTROL] * len(SPECIALS) + [gguf.TokenType.NORMAL] * (len(tokens) - len(SPECIALS)))
    w.add_token_merges(merges)
    w.add_bos_token_id(0)
    w.add_eos_token_id(2)
    w.add_add_bos_token(False)
    w.add_chat_template(CHATML)

    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    parts = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    for i in range(config["num_hidden_layers"]):
        for a, b in parts.items():
            for kind in ("weight", "bias"):
                names[f"model.layers.{i}.{a}.{kind}"] = f"blk.{i}.{b}.{kind}"
    rng = np.random.default_rng(seed)
    state = model.state_dict()
    for source, target in names.items():
        if source not in state or (tied and source == "lm_head.weight"):
            continue
        n = tuple(state[source].shape)
        if len(n) == 1:
            value = (1.0 + 0.2 * rng.standard_normal(n)) if "norm" in target else 0.3 * rng.standard_normal(n)
            stored, kind = value.astype(np.float32), T.F32
            exact = stored.astype(np.float64)
        else:
            # Wide enough for attention to choose and for logits to differ.
            scale = 1.0 if "embd" in target else (2.0 if "attn_q" in target or "attn_k" in target else 1.2) / np.sqrt(n[1])
            kind = tensor_type
            stored = quantize((scale * rng.standard_normal(n)).astype(np.float32), kind)
            exact = dequantize(stored, kind).astype(np.float64)
        with torch.no_grad():
            state[source].copy_(torch.from_numpy(exact))
        heads = config["num_attention_heads"] if "attn_q" in target else config["num_key_value_heads"] if "attn_k" in target else 0
        if heads:
            stored = permute(stored, heads)
        if kind in (T.F32, T.F16):
            w.add_tensor(target, np.ascontiguousarray(stored))
        else:
            w.add_tensor(target, np.ascontiguousarray(stored), raw_dtype=kind)
    if tied:
        model.tie_weights()
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()

    ids = rng.integers(len(SPECIALS), len(tokens), 70)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None]).logits[0].double().numpy()
    with open(out / f"{name}.logits", "wb") as f:
        f.write(struct.pack("<ii", len(ids), len(tokens)) + ids.astype("<i4").tobytes() + logits.astype("<f4").tobytes())
    print(f"{name}: logits {logits.min():.2f} … {logits.max():.2f}")


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(exist_ok=True, parents=True)
    build("f32", out, T.F32, seed=1)
    for kind in ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        build(kind.lower(), out, getattr(T, kind), seed=2)
    build("tied", out, tied=True, seed=3)
    build("bias", out, bias=True, seed=4)
    build("wide_heads", out, head_dim=32, num_key_value_heads=1, seed=5)
    build("linear", out, rope=dict(rope_type="linear", factor=4.0), seed=6)
    build("yarn", out, rope=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64), seed=7)
    build("llama3", out, rope=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64), seed=8)


if __name__ == "__main__":
    main()
