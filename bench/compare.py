"""The table of bench/compare: both programs take turns, the median of the rounds counts, ratios are of medians."""
import argparse, ctypes, json, os, statistics, subprocess, sys, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-m", "--model", default="models/SmolLM2-135M-Instruct.Q4_1.gguf")
parser.add_argument("-t", "--threads", type=int, default=2)
parser.add_argument("-r", "--rounds", type=int, default=5)
parser.add_argument("--skipstone", default="build/skipstone")
args = parser.parse_args()

ROWS, PREFILLS, DEPTH, STEPS = [1, 2, 3, 4, 6, 8, 12, 16], [128, 512], 64, 48
import llama_cpp as L


class Peer:
    """llama.cpp through its C API: the same passes as `skipstone bench` makes."""

    def __init__(self):
        L.llama_backend_init()
        quiet = L.llama_log_callback(lambda *_: None)
        L.llama_log_set(quiet, None)
        self.quiet = quiet
        start = time.perf_counter()
        self.model = L.llama_model_load_from_file(args.model.encode(), L.llama_model_default_params())
        self.load_s = time.perf_counter() - start
        p = L.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_threads, p.n_threads_batch = 1024, 512, 512, args.threads, args.threads
        self.ctx = L.llama_init_from_model(self.model, p)
        self.memory = L.llama_get_memory(self.ctx)
        self.n_vocab = L.llama_vocab_n_tokens(L.llama_model_get_vocab(self.model))
        self.batch = L.llama_batch_init(512, 0, 1)

    def run(self, position, n, all_logits):
        b = self.batch
        b.n_tokens = n
        for i in range(n):
            b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0] = (position + i) * 7919 % self.n_vocab, position + i, 1, 0
            b.logits[i] = 1 if all_logits or i == n - 1 else 0
        start = time.perf_counter()
        if L.llama_decode(self.ctx, b) != 0:
            sys.exit("llama_decode failed")
        L.llama_get_logits_ith(self.ctx, n - 1)
        return time.perf_counter() - start

    def forget(self, position):
        L.llama_memory_seq_rm(self.memory, 0, position, -1)

    def measure(self):
        prefill = {}
        for n in PREFILLS:
            times = []
            for _ in range(3):
                self.forget(0)
                times.append(self.run(0, n, False))
            prefill[n] = n / statistics.median(times)
        self.forget(0)
        self.run(0, DEPTH, False)
        passes = {}
        for n in ROWS:
            times = []
            for _ in range(9):
                self.forget(DEPTH)
                times.append(self.run(DEPTH, n, True))
            passes[n] = statistics.median(times[1:]) * 1e3
        self.forget(DEPTH)
        start = time.perf_counter()
        for i in range(STEPS):
            self.run(DEPTH + i, 1, True)
        return {"decode": STEPS / (time.perf_counter() - start), "prefill": prefill, "pass_ms": passes}


def ours():
    o = json.loads(subprocess.run([args.skipstone, "bench", "-m", args.model, "-t", str(args.threads), "-r", "12", "--json"], check=True, capture_output=True).stdout)
    return {"decode": o["decode_tokens_per_s"], "prefill": {int(k): v for k, v in o["prefill"].items()}, "pass_ms": {int(k): v for k, v in o["pass_ms"].items()},
            "load_s": o["load_s"], "kernels": o["kernels"], "copy": o["copy_bytes_per_s"], "weights": o["weight_bytes_per_s"]}


def main():
    peer = Peer()
    print(f"llama-cpp-python {L.__version__}: {L.llama_print_system_info().decode().strip()}", file=sys.stderr)
    a, b = [], []
    for r in range(args.rounds):
        b.append(peer.measure())
        a.append(ours())
        print(f"round {r + 1} of {args.rounds}: decode {a[-1]['decode']:.0f} against {b[-1]['decode']:.0f} tokens/s", file=sys.stderr)
    med = lambda rows, f: statistics.median(f(x) for x in rows)
    print(f"{os.path.basename(args.model)}, {args.threads} threads, kernels {a[0]['kernels']}; medians of {args.rounds} rounds in turns\n")
    print("| | skipstone | llama.cpp | ratio |\n|---|---|---|---|")
    print(f"| load, s | {med(a, lambda x: x['load_s']):.2f} | {peer.load_s:.2f} (maps the file) | |")
    d, e = med(a, lambda x: x["decode"]), med(b, lambda x: x["decode"])
    print(f"| decode, tokens/s | {d:.0f} | {e:.0f} | {d / e:.2f} |")
    for n in ROWS:
        x, y = med(a, lambda q: q["pass_ms"][n]), med(b, lambda q: q["pass_ms"][n])
        print(f"| pass of {n} row{'s' if n > 1 else ''}, ms (against 1 row) | {x:.2f} ({x / med(a, lambda q: q['pass_ms'][1]):.2f}) | {y:.2f} ({y / med(b, lambda q: q['pass_ms'][1]):.2f}) | {y / x:.2f} |")
    for n in PREFILLS:
        x, y = med(a, lambda q: q["prefill"][n]), med(b, lambda q: q["prefill"][n])
        print(f"| prefill {n}, tokens/s | {x:.0f} | {y:.0f} | {x / y:.2f} |")
    print(f"\nweights read at {med(a, lambda x: x['weights']) / 1e9:.1f} GB/s while decoding; copying moves {med(a, lambda x: x['copy']) / 1e9:.1f} GB/s")


main()
