#!/usr/bin/env python3
"""Trains a multi-token-prediction block on what `skipstone export-hidden` wrote, and writes it as a sidecar.

    train.py --model MODEL.gguf --data FOLDER... --held-out FOLDER... --out block.gguf --state state.pt --minutes 60

A run that was stopped goes on from its --state; --from starts from the block of a sidecar.
"""
import argparse, json, math, pathlib, random, sys, time
import numpy as np, torch
import block as B


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--held-out", nargs="*", default=[])
    p.add_argument("--out", required=True)
    p.add_argument("--state", help="checkpoint, read if it is there")
    p.add_argument("--from", dest="start", help="a sidecar to start from")
    p.add_argument("--vocabulary", type=int, default=8192, help="tokens that can be drafted (default 8192)")
    p.add_argument("--depths", type=int, default=3, help="chained drafts that are trained (default 3)")
    p.add_argument("--window", type=int, default=0, help="positions that the block's attention sees; 0 = all")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--batch", type=int, default=2048, help="drafted positions per step (default 2048)")
    p.add_argument("--rate", type=float, default=2e-3)
    p.add_argument("--optimizer", choices=["adamw", "muon"], default="muon")
    p.add_argument("--longest", type=int, default=768, help="tokens of a sequence that are used (default 768)")
    p.add_argument("--minutes", type=float, default=0, help="stop after so long, to go on later; 0 = at the last step")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--say", type=int, default=20, help="steps from one line to the next (default 20)")
    p.add_argument("--check", type=int, default=100, help="steps from one held-out evaluation and checkpoint to the next (default 100)")
    p.add_argument("--check-size", type=int, default=40, help="held-out answers of each temperature that are looked at on the way (default 40)")
    return p.parse_args()


def sequences_of(folders, shape, longest):
    out = []
    for folder in map(pathlib.Path, folders):
        about = json.loads((folder / "about.json").read_text())
        if about["n_embd"] != shape.n_embd or not about["after_norm"]:
            raise SystemExit(f"train.py: '{folder}' holds states of {about['n_embd']} values, {'after' if about['after_norm'] else 'before'} the norm; {shape.n_embd} after it are needed")
        tokens = np.memmap(folder / "tokens.i32", np.int32, "r")
        hidden = np.memmap(folder / "hidden.f16", np.float16, "r")
        hidden = hidden[: len(hidden) // shape.n_embd * shape.n_embd].reshape(-1, shape.n_embd)  # it may still be written
        for line in (folder / "index.jsonl").read_text().splitlines():
            a = json.loads(line)
            at, n = a["offset"], min(a["n"], longest)
            if n - a["n_prompt"] >= 3 and at + n <= min(len(tokens), len(hidden)):
                out.append((tokens[at : at + n], hidden[at : at + n], a["n_prompt"], a))
    return out


def batches_of(sequences, budget, rng):
    """Batches of about `budget` drafted positions, of sequences of like lengths."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i][0]) + rng.random() * 64)
    out, now, drafted = [], [], 0
    for i in order:
        now.append(i)
        drafted += len(sequences[i][0]) - 1 - sequences[i][2]
        if drafted >= budget:
            out.append(now)
            now, drafted = [], 0
    if now:
        out.append(now)
    rng.shuffle(out)
    return out


def frequent_tokens(sequences, n_vocab, wanted):
    counts = np.zeros(n_vocab, np.int64)
    for tokens, _, n_prompt, _ in sequences:
        np.add.at(counts, tokens[n_prompt:], 1)
    ids = np.sort(np.argsort(-counts, kind="stable")[:wanted])
    return ids, counts[ids].sum() / counts.sum()


class Muon:
    """Momentum whose matrix updates are made orthogonal by Newton-Schulz steps (Jordan et al. 2024); vectors by Adam's rule."""

    def __init__(self, parameters, rate, momentum=0.95):
        self.p, self.rate, self.momentum, self.t = parameters, rate, momentum, 0
        self.m = {n: torch.zeros_like(x) for n, x in parameters.items()}
        self.v = {n: torch.zeros_like(x) for n, x in parameters.items() if x.ndim == 1}

    @staticmethod
    def orthogonal(g):
        tall = g.shape[0] > g.shape[1]
        x = g.T if tall else g
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
        return x.T if tall else x

    @torch.no_grad()
    def step(self, factor):
        self.t += 1
        for n, p in self.p.items():
            g, m = p.grad, self.m[n]
            if p.ndim == 1:
                m.lerp_(g, 0.1)
                self.v[n].lerp_(g * g, 0.05)
                p.sub_(0.3 * self.rate * factor * (m / (1 - 0.9**self.t)) / ((self.v[n] / (1 - 0.95**self.t)).sqrt() + 1e-8))
                continue
            m.mul_(self.momentum).add_(g)
            update = self.orthogonal(g + self.momentum * m)
            p.mul_(1 - 0.01 * self.rate * factor).sub_(self.rate * factor * 0.2 * max(p.shape) ** 0.5 * update)

    def state(self):
        return {"m": self.m, "v": self.v, "t": self.t}

    def load(self, s):
        self.m, self.v, self.t = s["m"], s["v"], s["t"]


class AdamW:
    def __init__(self, parameters, rate):
        self.rate, self.o = rate, torch.optim.AdamW(parameters.values(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)

    def step(self, factor):
        for g in self.o.param_groups:
            g["lr"] = self.rate * factor
        self.o.step()

    def state(self):
        return self.o.state_dict()

    def load(self, s):
        self.o.load_state_dict(s)


def loss_of(model, batch, head, depths):
    """Drafts after one that was wrong are never looked at: few of them are trained."""
    probabilities = (batch.target @ head["rows"].T).softmax(-1)

    def choose(d, rows, y):
        with torch.no_grad():
            right = head["ids"][(y @ head["rows"].T).argmax(-1)] == batch.next_token[rows + d - 1]
            return right | (torch.rand(len(right)) < 0.1)

    total = 0.0
    for d, (rows, y) in enumerate(model.drafts(batch, depths, choose)):
        total = total + B.DistillLoss.apply(y, probabilities, rows + d, torch.full((len(rows),), 0.7**d), head["rows"])
    return total / len(batch.rows)


@torch.no_grad()
def evaluate(model, sequences, head, budget, most, depths, rng_seed=7):
    """Acceptance by depth, given that the drafts before were accepted: argmax against what came where temperature was 0, and elsewhere
    draft and target drawn at the answer's temperature with the same noise."""
    hits, tries = {}, {}
    generator = torch.Generator().manual_seed(rng_seed)
    for t in sorted({s[3]["temperature"] for s in sequences}):
        chosen = [s for s in sequences if s[3]["temperature"] == t][:most]
        for group in batches_of(chosen, budget, random.Random(1)):
            b = B.Batch([chosen[i][:3] for i in group], model.s.n_embd)

            def right(d, rows, y):
                q = y @ head["rows"].T
                if t == 0:
                    return head["ids"][q.argmax(-1)] == b.next_token[rows + d - 1]
                p = b.target[rows + d - 1] @ head["all"].T
                noise = -torch.log(-torch.log(torch.rand(p.shape, generator=generator).clamp_(1e-20, 1 - 1e-7)))
                return head["ids"][(q / t + noise[:, head["ids"]]).argmax(-1)] == (p / t + noise).argmax(-1)

            def choose(d, rows, y):
                good = right(d, rows, y)
                hits[t, d] = hits.get((t, d), 0) + int(good.sum())
                tries[t, d] = tries.get((t, d), 0) + len(good)
                return good

            last = model.drafts(b, depths, choose)[-1]
            choose(depths, *last)
    return {k: (hits[k] / max(1, tries[k]), tries[k]) for k in sorted(hits)}


def say_acceptance(result):
    by = {}
    for (t, d), (share, _) in result.items():
        by.setdefault(t, []).append(f"{share:.3f}")
    return "; ".join(f"T={t:g}: {' '.join(v)}" for t, v in by.items())


def main():
    a = parse()
    start = time.monotonic()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    tensors, fields = B.tensors_of(a.model)
    shape = B.Shape(fields)
    embedding = B.dequantized(tensors["token_embd.weight"])
    output = B.dequantized(tensors["output.weight"]) if "output.weight" in tensors else embedding
    data, held_out = sequences_of(a.data, shape, a.longest), sequences_of(a.held_out, shape, 4096)
    drafted = sum(len(s[0]) - 1 - s[2] for s in data)
    p = B.initial_parameters(tensors, shape)
    ids, coverage = frequent_tokens(data, len(embedding), a.vocabulary)
    if a.start:
        p, ids = B.load_sidecar(a.start)
    p = {n: x.clone().requires_grad_() for n, x in p.items()}
    ids = torch.tensor(np.asarray(ids), dtype=torch.long)
    head = {"ids": ids, "rows": output[ids].contiguous(), "all": output}
    model = B.Block(shape, p, embedding, a.window)
    optimizer = {"muon": Muon, "adamw": AdamW}[a.optimizer](p, a.rate)
    step, log = 0, []
    state = pathlib.Path(a.state) if a.state else None
    if state and state.exists():
        s = torch.load(state, weights_only=False)
        with torch.no_grad():
            for n in p:
                p[n].copy_(s["parameters"][n])
        optimizer.load(s["optimizer"])
        step, log = s["step"], s["log"]
    fingerprint = json.loads((pathlib.Path(a.data[0]) / "about.json").read_text())["model_fingerprint"]
    print(f"{len(data)} sequences, {drafted} drafted positions, {len(ids)} tokens cover {coverage:.3f} of them; {sum(x.numel() for x in p.values())} parameters; step {step} of {a.steps}", flush=True)

    def save():
        B.export(a.out, p, shape, ids, fingerprint, a.window)
        if state:
            torch.save({"parameters": {n: x.detach() for n, x in p.items()}, "optimizer": optimizer.state(), "step": step, "log": log}, state)

    smooth, epoch, plan = None, 0, []
    while step < a.steps and not (a.minutes and time.monotonic() - start > 60 * a.minutes):
        rng = random.Random(a.seed * 1000 + step) if not plan else rng
        if not plan:
            plan = batches_of(data, a.batch, rng)
        b = B.Batch([data[i][:3] for i in plan.pop()], shape.n_embd)
        loss = loss_of(model, b, head, a.depths)
        for x in p.values():
            x.grad = None
        loss.backward()
        factor = min(1.0, (step + 1) / 30) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / a.steps)))
        optimizer.step(factor)
        step += 1
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        if step % a.say == 0:
            print(f"step {step}: loss {smooth:.4f}, {time.monotonic() - start:.0f} s", flush=True)
        if step % a.check == 0 or step == a.steps:
            if held_out:
                result = evaluate(model, held_out, head, a.batch, a.check_size, a.depths)
                log.append((step, smooth, {f"{t:g}/{d}": share for (t, d), (share, _) in result.items()}))
                print(f"step {step}: held out {say_acceptance(result)}", flush=True)
            save()
    save()


if __name__ == "__main__":
    main()
