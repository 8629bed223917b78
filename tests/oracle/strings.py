"""Strings that tokenizers get wrong: the same list everywhere, as bytes."""
import random

SCRIPTS = ["The quick brown fox jumps over the lazy dog.", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "Voix ambiguë d'un cœur qui préfère les jattes de kiwis.",
           "Съешь же ещё этих мягких французских булок, да выпей чаю.", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.", "نص حكيم له سر قاطع وذو شأن عظيم", "דג סקרן שט בים מאוכזב",
           "いろはにほへと ちりぬるを カタカナ 漢字かな交じり文。", "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。", "키스의 고유조건은 입술끼리 만나야 하고", "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा", "นายสังฆภัณฑ์ เฮงพิทักษ์ฝั่ง ผู้เฒ่า",
           "Ďábelské ódy žluťoučkého koně", "Pijamalı hasta yağız şoföre çabucak güvendi. İSTANBUL ıi", "ẞẠẢẤ ǅǈǋ ʰʱʲ ªº", "க்ஷ தமிழ் மொழி", "ქართული ენა", "Հայերեն լեզու", "ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𐐷𐑊"]
EMOJI = ["👩‍👩‍👧‍👦 family", "🏳️‍🌈🏴‍☠️", "👍🏽👎🏿", "🇩🇪🇫🇷🇯🇵", "1️⃣2️⃣#️⃣", "e\u0301a\u0308 n\u0303", "☕️☀︎", "🧑🏻‍🚀 to the 🌙!", "\u200b\u200d\ufeff", "a\u00adb"]
CODE = ["def f(x):\n    return x**2  # squared\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }\n\treturn 0;\n", "SELECT * FROM t WHERE a='it''s' AND b<>3;", "{\"a\": [1, 2.5e-3, null], \"b\": \"\\u00e9\"}",
        "#!/bin/sh\nset -e\ncd \"$HOME\" && ls -la | grep '^d'", "<div class=\"x\">&nbsp;</div>", "x = y if z else w; print(f'{x!r:>10}')", "https://example.org/a/b?c=d&e=%20#frag", "C:\\Users\\x\\file.txt", "λx.x → ∀y∈S: y≠∅",
        "\\frac{a}{b} \\sum_{i=0}^{n} x_i", "| a | b |\n|---|---|\n| 1 | 2 |", "snake_case camelCase PascalCase SCREAMING_CASE kebab-case", "0x1F 0b1010 1_000_000 3.14159 1e10"]
CONTRACTIONS = ["I'm you're he's we've they'll I'd can't", "I'M YOU'RE HE'S WE'VE THEY'LL I'D CAN'T", "'s 't 're 've 'm 'll 'd", "don’t it’s", "O'Brien's 'quoted' ''double''", "ſ'ſ I'ſ"]
NUMBERS = ["1", "12", "123", "1234", "12345", "1234567890", "3.14", "1,234,567", "١٢٣", "१२३", "½ ² Ⅷ ①", "2024-05-06T07:08:09Z", "v1.2.3-rc4", "007"]
SPACES = [" ", "  ", "   ", "a  b", "a   b", "  a", "a  ", "\t", "\t\t x", "\n", "\n\n", "\n\n\n", "a\nb", "a\n\nb", "a \n b", "a\r\nb", "\r\n\r\n", " \n", "\n ", "  \n  \n  x", "\u00a0", "a\u00a0b", "\u3000全角", "a\u2003b", "x \t y", "\v\f\x1c\x85", " \u200a ", "end \n", "!\n\n", "...\n\n\n", "a.  B"]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|im_start|>user\nHi<|im_end|>\n", "<|endoftext|>", "<|im_start", "<|im_start|", "<|im_start|><|im_start|>", " <|im_end|> ", "<s></s>", "[INST] x [/INST]", "<bos>", "<|im_start|>\n\n<|im_end|>", "<|IM_START|>", "a<|im_end|>b"]
CONTROL = ["\x00", "a\x00b", "\x01\x02\x03", "\x7f", "\x1b[31mred\x1b[0m", "\u0085\u2028\u2029", "\ufffd", "\ufffe\uffff", "\U0010ffff", "\ue000"]
BAD = [b"\x80", b"\xff\xfe", b"a\xc3", b"\xc3(", b"\xe2\x82", b"ok \xf0\x9f\x98 end", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"caf\xe9", b"\xe2\x28\xa1 x", b"\xf8\x88\x80\x80\x80"]


def all_strings():
    out = [s.encode() for s in SCRIPTS + EMOJI + CODE + CONTRACTIONS + NUMBERS + SPACES + SPECIALS + CONTROL] + list(BAD) + [b""]
    rng = random.Random(20261201)
    pieces = SCRIPTS + EMOJI + CODE + CONTRACTIONS + NUMBERS + SPACES + SPECIALS
    while len(out) < 900:  # mixtures of pieces and of parts of pieces
        parts = []
        for _ in range(rng.randint(1, 5)):
            p = rng.choice(pieces)
            a = rng.randint(0, len(p))
            parts.append(p[a:rng.randint(a, len(p))] if rng.random() < 0.6 else p)
        out.append(rng.choice(["", " ", "\n", "  "]).join(parts).encode())
    alphabet = "ab AB'’sSdt019 ½\n\r\t.,!?-_/\\\"#(){}é日本ー가αж\u0301\u200d😀 "
    while len(out) < 1150:
        out.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 30))).encode())
    return out


def bad(s):
    """Whether these bytes are not valid UTF-8."""
    try:
        s.decode()
        return False
    except UnicodeDecodeError:
        return True
