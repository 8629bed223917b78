"""The multi-token-prediction block in torch: what src/models/mtp.c computes, for training, and its files."""
import json, math, pathlib
import gguf, numpy as np, torch
import torch.nn.functional as F


def tensors_of(path):
    """All tensors of a GGUF file as float32, and its fields."""
    reader = gguf.GGUFReader(path)
    return {t.name: t for t in reader.tensors}, reader.fields


def dequantized(t):
    return torch.from_numpy(np.ascontiguousarray(gguf.quants.dequantize(t.data, t.tensor_type), dtype=np.float32))


def field(fields, key, fallback=None):
    return fields[key].contents() if key in fields else fallback


class Shape:
    """Hyperparameters of a llama-family file."""

    def __init__(self, fields):
        get = lambda k, d=None: field(fields, "llama." + k, d)
        self.n_embd, self.n_layers, self.n_ff = get("embedding_length"), get("block_count"), get("feed_forward_length")
        self.n_heads = get("attention.head_count")
        self.n_kv = get("attention.head_count_kv", self.n_heads)
        self.head_dim = get("attention.key_length", self.n_embd // self.n_heads)
        self.eps, self.rope_base = get("attention.layer_norm_rms_epsilon"), get("rope.freq_base", 10000.0)


MATRICES = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "nextn.eh_proj"]
NORMS = ["attn_norm", "ffn_norm", "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"]


def initial_parameters(tensors, shape):
    """The model's last layer, fed with mostly the hidden state (its own width) and a little of the embedding."""
    p = {}
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"]:
        p[name] = dequantized(tensors[f"blk.{shape.n_layers - 1}.{name}.weight"])
    eye = torch.eye(shape.n_embd)
    p["nextn.eh_proj"] = torch.cat([0.3 * eye, eye], 1)
    p["nextn.enorm"], p["nextn.hnorm"] = torch.ones(shape.n_embd), torch.ones(shape.n_embd)
    p["nextn.shared_head_norm"] = dequantized(tensors["output_norm.weight"])
    return p


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def rotate(x, position, base):
    """Pairs (2i, 2i + 1), as GGUF files of this family store them. x [n][heads][dim], position [n]."""
    dim = x.shape[-1]
    f = base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    a = position.float()[:, None] * f[None]
    c, s = a.cos()[:, None], a.sin()[:, None]
    u, v = x[..., 0::2], x[..., 1::2]
    return torch.stack([u * c - v * s, v * c + u * s], -1).flatten(-2)


class Batch:
    """Sequences, flattened. A pair at position p holds the token there and the hidden state before it.

    hidden, token, position, seq: of all pairs [n_pairs]; rows: the pairs that drafts start from [n_rows]; target: the hidden states
    whose distribution the first draft imitates [n_rows], and next_token the token that came. Rows of a sequence follow each other, so
    that what the second draft of row i imitates is target[i + 1]: if i + 1 < last[i], the end of the sequence's rows.
    """

    def __init__(self, sequences, n_embd):
        hidden, token, position, seq, rows, next_token, target, last = [], [], [], [], [], [], [], []
        at = n_rows = 0
        for b, (tokens, h, n_prompt) in enumerate(sequences):
            n = len(tokens) - 1  # pairs with a state after them
            hidden.append(np.concatenate([np.zeros((1, n_embd), np.float16), h[: n - 1]]))
            token.append(tokens[:n])
            position.append(np.arange(n))
            seq.append(np.full(n, b))
            p = np.arange(min(n_prompt, n), n)
            rows.append(at + p)
            target.append(h[p[0] : n] if len(p) else h[:0])
            next_token.append(tokens[p + 1])
            n_rows += len(p)
            last.append(np.full(len(p), n_rows))
            at += n
        cat = lambda x, dtype: torch.from_numpy(np.concatenate(x)).to(dtype)
        self.hidden, self.token, self.position, self.seq = cat(hidden, torch.float32), cat(token, torch.long), cat(position, torch.long), cat(seq, torch.long)
        self.rows = cat(rows, torch.long)
        self.target, self.next_token, self.last = cat(target, torch.float32), cat(next_token, torch.long), cat(last, torch.long)
        self._pad()

    def _pad(self):
        """Places of pairs and rows in padded [sequences][time] arrays, for attention."""
        n_seq = int(self.seq.max()) + 1
        row_seq, row_position = self.seq[self.rows], self.position[self.rows]
        first = torch.full((n_seq,), 1 << 30).scatter_reduce(0, row_seq, row_position, "amin")
        self.n_seq, self.tk = n_seq, int(self.position.max()) + 1
        self.tq = int((row_position - first[row_seq]).max()) + 1
        self.key_place = self.seq * self.tk + self.position
        self.row_place = row_seq * self.tq + row_position - first[row_seq]
        self.row_position = row_position
        at = torch.zeros(n_seq * self.tq, dtype=torch.long).index_copy(0, self.row_place, row_position).view(n_seq, self.tq)
        self.query_position = at


class Block:
    def __init__(self, shape, parameters, embedding, window=0):
        self.s, self.p, self.embedding, self.window = shape, parameters, embedding, window

    def _pair(self, hidden, token):
        p, s = self.p, self.s
        x = torch.cat([rms_norm(self.embedding[token], p["nextn.enorm"], s.eps), rms_norm(hidden, p["nextn.hnorm"], s.eps)], -1)
        return F.linear(x, p["nextn.eh_proj"])

    def _keys(self, normed, position):
        s = self.s
        k = rotate(F.linear(normed, self.p["attn_k"]).view(-1, s.n_kv, s.head_dim), position, s.rope_base)
        return k, F.linear(normed, self.p["attn_v"]).view(-1, s.n_kv, s.head_dim)

    def _queries(self, normed, position):
        s = self.s
        return rotate(F.linear(normed, self.p["attn_q"]).view(-1, s.n_heads, s.head_dim), position, s.rope_base)

    def _padded(self, x, place, n, t):
        """[rows][heads][dim] to [n][heads][t][dim]."""
        out = x.new_zeros(n * t, *x.shape[1:]).index_copy(0, place, x)
        return out.view(n, t, *x.shape[1:]).transpose(1, 2)

    def _attend(self, b, place, q, keys, values, mask, chain):
        """q [rows][heads][dim], row i at place[i], over the true pairs and, each for itself, over the chained ones before it: [(k, v)] of [rows][kv][dim]."""
        s, group = self.s, self.s.n_heads // self.s.n_kv
        pad = lambda x: self._padded(x, place, b.n_seq, b.tq)
        scale = s.head_dim**-0.5
        qp = pad(q).reshape(b.n_seq, s.n_kv, group * b.tq, s.head_dim)
        scores = [qp @ keys.transpose(-1, -2) * scale + mask]
        chained = [(pad(k).repeat(1, 1, group, 1), pad(v).repeat(1, 1, group, 1)) for k, v in chain]
        scores += [(qp * k).sum(-1, keepdim=True) * scale for k, _ in chained]
        weights = torch.cat(scores, -1).softmax(-1)
        out = weights[..., : b.tk] @ values
        for i, (_, v) in enumerate(chained):
            out = out + weights[..., b.tk + i : b.tk + i + 1] * v
        out = out.reshape(b.n_seq, s.n_heads, b.tq, s.head_dim).transpose(1, 2).reshape(b.n_seq * b.tq, -1)
        return out[place]

    def _rest(self, x, attended):
        p, s = self.p, self.s
        x = x + F.linear(attended, p["attn_output"])
        h = rms_norm(x, p["ffn_norm"], s.eps)
        x = x + F.linear(F.silu(F.linear(h, p["ffn_gate"])) * F.linear(h, p["ffn_up"]), p["ffn_down"])
        return rms_norm(x, p["nextn.shared_head_norm"], s.eps)

    def drafts(self, b, depths, choose):
        """Gives (rows, outputs) for each depth: which of b's rows are drafted that far, and the block's outputs after its norm for them,
        the drafts before taken as true. choose(depth, rows, outputs) says which of the rows, as a mask, are drafted further."""
        s, group, out, chain = self.s, self.s.n_heads // self.s.n_kv, [], []
        which = torch.arange(len(b.rows))
        x = self._pair(b.hidden, b.token)
        normed = rms_norm(x, self.p["attn_norm"], s.eps)
        k, v = self._keys(normed, b.position)
        keys, values = self._padded(k, b.key_place, b.n_seq, b.tk), self._padded(v, b.key_place, b.n_seq, b.tk)
        distance = b.query_position[:, :, None] - torch.arange(b.tk)[None, None]
        for d in range(depths):
            seen = distance >= 0
            if self.window:
                seen = seen & (distance + d < self.window)
            mask = torch.zeros(seen.shape).masked_fill(~seen, -1e9).repeat(1, group, 1)[:, None]
            if d == 0:
                x, normed = x[b.rows], normed[b.rows]
            else:
                keep = choose(d, which, out[-1][1]) & (which + d < b.last[which])
                which, y = which[keep], out[-1][1][keep]
                chain = [(k[keep], v[keep]) for k, v in chain]
                x = self._pair(y, b.next_token[which + d - 1])
                normed = rms_norm(x, self.p["attn_norm"], s.eps)
                chain.append(self._keys(normed, b.row_position[which] + d))
            q = self._queries(normed, b.row_position[which] + d)
            out.append((which, self._rest(x, self._attend(b, b.row_place[which], q, keys, values, mask, chain))))
        return out


class DistillLoss(torch.autograd.Function):
    """sum over rows of weight * cross entropy(probabilities[rows], softmax(y @ head)). The gradient is formed on the way, so that no
    logits are kept."""

    @staticmethod
    def forward(ctx, y, probabilities, rows, weight, head, chunk=256):
        gradient, total = torch.empty_like(y), 0.0
        for i in range(0, len(y), chunk):
            p = probabilities[rows[i : i + chunk]]
            q = y[i : i + chunk] @ head.T
            norm = q.logsumexp(-1, keepdim=True)
            w = weight[i : i + chunk, None]
            total += (w[:, 0] * (norm[:, 0] - (p * q).sum(-1))).sum().item()
            q.sub_(norm).exp_().sub_(p).mul_(w)
            gradient[i : i + chunk] = q @ head
        ctx.save_for_backward(gradient)
        return y.new_tensor(total)

    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0] * g, None, None, None, None, None


def export(path, parameters, shape, head_ids, fingerprint, window=0, extra=None, matrix_type=gguf.GGMLQuantizationType.Q8_0):
    """The block as a sidecar: matrices quantised, norms in float32, the head as token ids."""
    w = gguf.GGUFWriter(path, "llama")
    n = shape.n_layers
    w.add_name(pathlib.Path(path).stem)
    w.add_license("apache-2.0")
    w.add_embedding_length(shape.n_embd)
    w.add_block_count(n + 1)
    w.add_uint32("llama.nextn_predict_layers", 1)
    w.add_string("llama.nextn.model_fingerprint", fingerprint)
    w.add_bool("llama.nextn.hidden_after_norm", True)
    w.add_array("llama.nextn.draft_token_ids", [int(i) for i in head_ids])
    if window:
        w.add_uint32("llama.nextn.attention_window", window)
    for key, value in (extra or {}).items():
        {str: w.add_string, float: w.add_float32, int: w.add_uint32}[type(value)]("skipstone.mtp." + key, value)
    for name in MATRICES + NORMS:
        t = parameters[name].detach().numpy().astype(np.float32)
        if name in MATRICES:
            w.add_tensor(f"blk.{n}.{name}.weight", gguf.quants.quantize(t, matrix_type), raw_dtype=matrix_type)
        else:
            w.add_tensor(f"blk.{n}.{name}.weight", t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def load_sidecar(path):
    """Parameters and head ids of a sidecar, to train on from them."""
    tensors, fields = tensors_of(path)
    p = {name.split(".", 2)[2].removesuffix(".weight"): dequantized(t) for name, t in tensors.items()}
    return p, field(fields, "llama.nextn.draft_token_ids")
