#!/usr/bin/env python3
"""A model's plain answers to the workloads, for `skipstone bench --spec-edits`: what proposers foresee of them, and what that
would gain on a machine where rows cost something else.

    bench/answers.py build/skipstone MODEL > build/answers.jsonl
    build/skipstone bench --spec-edits build/answers.jsonl --row-cost 0.16 -m MODEL

Each line holds the workload's name, the prompt (without the chat template) and the answer, of at most 128 tokens.
"""
import json, pathlib, subprocess, sys

WORKLOADS = pathlib.Path(__file__).resolve().parent / "workloads"


def answer(program, model, line):
    command = [program, "run", "-m", model, "-p", line["prompt"], "-n", "128", "--temperature", str(line.get("temperature", 0)), "--seed", "1", "--json", "--spec", "off"]
    command += ["--raw"] * line.get("raw", False) + (["--stop", line["stop"]] if "stop" in line else [])
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["text"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for path in sorted(WORKLOADS.glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            text = answer(*sys.argv[1:], line)
            if text:
                print(json.dumps({"kind": path.stem, "share": 0, "before": line["prompt"], "after": text}))


main()
