#!/usr/bin/env python3
"""Writes prompts, a JSON object per line, as `skipstone export-hidden` takes them.

    prompts.py --count 3000 --seed 1 > first.jsonl
    prompts.py --count 1000 --seed 2 --answers FOLDER... > second.jsonl     second turns, summaries and edits of earlier answers

The same arguments give the same prompts.
"""
import argparse, json, pathlib, random
import seeds


def some_fields(r):
    entity = r.choice(sorted(seeds.FIELDS))
    fields = seeds.FIELDS[entity]
    return entity, ", ".join(r.sample(fields, r.randint(2, len(fields))))


def first_turn(r):
    kind = r.choices(["ask", "about", "person", "place", "story", "list", "code", "json"], [6, 34, 5, 6, 14, 12, 14, 9])[0]
    pick = lambda name: r.choice(getattr(seeds, name))
    if kind == "ask":
        return pick("ASKS")
    if kind == "about":
        return pick("ABOUT").format(t=pick("TOPICS"), u=pick("TOPICS"))
    if kind == "person":
        return pick("PERSON_ASKS").format(p=pick("PEOPLE"))
    if kind == "place":
        return pick("PLACE_ASKS").format(p=pick("PLACES"))
    if kind == "story":
        return pick("STORY_ASKS").format(c=pick("CHARACTERS"), d=pick("CHARACTERS"), s=pick("SETTINGS"), x=pick("THINGS"))
    if kind == "list":
        return pick("LIST_ASKS").format(o=pick("OBJECTS"), n=r.choice([3, 5, 5, 7, 10, 12, 20]))
    if kind == "code":
        return pick("CODE_ASKS").format(l=pick("CODE_LANGUAGES"), k=pick("CODE"))
    entity, fields = some_fields(r)
    return pick("JSON_ASKS").format(e=entity, f=fields, n=r.choice([2, 3, 4, 5]))


def settings(r, seed):
    """Temperatures from 0 to 1; with the filters that `run` has by default, and without."""
    temperature, filtered = r.choices([(0, False), (0.2, True), (0.5, True), (0.7, False), (0.8, True), (1, False)], [36, 16, 8, 16, 12, 12])[0]
    filters = {"top_k": 40, "top_p": 0.95, "min_p": 0.05} if filtered else {}
    return {"temperature": temperature, **filters, "seed": seed, "max_tokens": r.choice([128, 192, 256, 320, 448])}


def with_system(r, messages):
    system = r.choices([None, seeds.QUICKSTART_SYSTEM, r.choice(seeds.SYSTEMS)], [60, 28, 12])[0]
    return ([{"role": "system", "content": system}] if system else []) + messages


def fresh(r):
    if r.random() < 0.06:
        return {"prompt": r.choice(seeds.RAW).replace("\\n", "\n").format(t=r.choice(seeds.TOPICS))}
    return {"messages": with_system(r, [{"role": "user", "content": first_turn(r)}])}


def earlier(folders):
    out = []
    for folder in folders:
        for line in (pathlib.Path(folder) / "index.jsonl").read_text().splitlines():
            a = json.loads(line)
            if "messages" in a and a["finish_reason"] == "stop" and 80 < len(a["answer"]) < 1400:
                out.append(a)
    return out


def following(r, answers):
    a = r.choice(answers)
    if r.random() < 0.5:
        content = r.choice(seeds.FOLLOW_UPS).replace("\\n", "\n").replace("{a}", a["answer"].strip())
        return {"messages": with_system(r, [{"role": "user", "content": content}])}
    return {"messages": a["messages"] + [{"role": "assistant", "content": a["answer"]}, {"role": "user", "content": r.choice(seeds.SECOND_TURNS)}]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--answers", nargs="*", default=[], help="folders of export-hidden: continue from their answers")
    a = p.parse_args()
    r = random.Random(a.seed)
    answers = earlier(a.answers)
    if a.answers and not answers:
        raise SystemExit("prompts.py: the folders hold no finished answer to go on from")
    for i in range(a.count):
        prompt = following(r, answers) if answers else fresh(r)
        print(json.dumps({**prompt, **settings(r, a.seed * 1000003 + i)}, ensure_ascii=False))


main()
