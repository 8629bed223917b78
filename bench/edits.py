#!/usr/bin/env python3
"""Text files of this repository, edited by a script: for `skipstone bench --spec-edits`.

    bench/edits.py > build/edits.jsonl
    skipstone bench --spec-edits build/edits.jsonl -m MODEL

Each line holds a kind of edit, about which share of the tokens it changes (the benchmark counts it), and the text before and
after. `renames`: some words are replaced everywhere, each by the same new one. `scattered`: no change is like another: words
replaced, left out or added, lines left out or added.
"""
import json, pathlib, random, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ["src/speculate/verdict.c", "src/engine/stops.c", "src/models/rope.c", "src/base/str.c", "src/cli/tokenize.c", "docs/HACKING.md", "docs/SPECULATION.md", "README.md"]
SHARES = [0.01, 0.05, 0.10, 0.20]
WORDS = "amount answer area base block body box bytes cell change city class clock color column cost count day depth door edge field flag frame front game group hand head house index item job key kind label level limit line list mark mode month name node number order owner page part path place plan point price rank rate room row rule scale scene score shape side size slot space stage start state step stock table task team term text time tool total track tree type unit user value view wall water way week weight width word world year zone".split()
LENGTH = 3500  # characters of a file: about a thousand tokens


def pieces(text):
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def new_word(rng):
    return rng.choice(WORDS) + rng.choice(["", "", "", "s", "_" + rng.choice(WORDS), str(rng.randrange(1, 10))])


def size(word):
    """About how many tokens it has."""
    return sum(1 + (len(part) > 8) for part in re.findall(r"[A-Za-z]+|\d|[^\sA-Za-z\d]", word))


def renames(words, share, rng):
    count, names, changed = {}, {}, 0
    for w in words:
        if re.fullmatch(r"[A-Za-z_]\w*", w):
            count[w] = count.get(w, 0) + 1
    total = sum(map(size, words))
    for w in rng.sample(sorted(count), len(count)):
        new = new_word(rng)
        cost = count[w] * max(size(w), size(new))
        if count[w] >= 2 and changed + cost <= 1.2 * share * total:
            names[w] = new
            changed += cost
    return [names.get(w, w) for w in words]


def scattered(words, share, rng):
    """Changes at random places until the share is reached: at a word it is replaced (6 in 10), followed by another (2) or left
    out (2); one place in twelve is the end of a line, where a line is added or the next left out."""
    budget = 1.4 * share * sum(map(size, words))  # the benchmark then counts about `share`: a change costs less than size() says
    ends = [i for i, w in enumerate(words) if "\n" in w]
    plain = [i for i, w in enumerate(words) if re.fullmatch(r"\w+", w)]
    words, taken = list(words), set()
    while budget > 0:
        i = rng.choice(ends if rng.random() < 1 / 12 else plain)
        if i in taken:
            continue
        taken.add(i)
        chance, new = rng.random(), new_word(rng)
        if "\n" in words[i] and chance < 0.5:
            line = " ".join(new_word(rng) for _ in range(4))
            words[i] += line + "\n"
            budget -= size(line)
        elif "\n" in words[i]:
            end = next((k for k in range(i + 1, len(words)) if "\n" in words[k]), len(words))
            if sum(map(size, words[i + 1 : end])) < 25:
                budget -= sum(map(size, words[i + 1 : end]))
                words[i + 1 : end] = [""] * (end - i - 1)
        elif chance < 0.8:
            budget -= size(new) if chance >= 0.6 else max(size(new), size(words[i]))
            words[i] = words[i] + " " + new if chance >= 0.6 else new
        else:
            budget -= size(words[i])
            words[i] = ""
    return words


for kind in (renames, scattered):
    for share in SHARES:
        for name in FILES:
            rng = random.Random(f"{kind.__name__} {share} {name}")
            before = (ROOT / name).read_text()[:LENGTH]
            after = "".join(kind(pieces(before), share, rng))
            json.dump({"kind": kind.__name__, "share": share, "file": name, "before": before, "after": after}, sys.stdout)
            print()
