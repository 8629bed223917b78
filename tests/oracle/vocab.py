"""Vocabulary-only GGUF files made of another file's metadata, with values of strings replaced."""
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def _skip(data, at, kind):
    if kind in SIZES:
        return at + SIZES[kind]
    (n,) = struct.unpack_from("<Q", data, at if kind == 8 else at + 4)
    if kind == 8:
        return at + 8 + n
    (element,) = struct.unpack_from("<I", data, at)
    at += 12
    for _ in range(n):
        at = _skip(data, at, element)
    return at


def vocabulary_only(source, target, replace):
    data = open(source, "rb").read(32 << 20)
    magic, version, _, n_values = struct.unpack_from("<4sIQQ", data, 0)
    assert magic == b"GGUF"
    at, out = 24, []
    for _ in range(n_values):
        start = at
        (n,) = struct.unpack_from("<Q", data, at)
        key = data[at + 8 : at + 8 + n].decode()
        (kind,) = struct.unpack_from("<I", data, at + 8 + n)
        value = at + 12 + n
        at = _skip(data, value, kind)
        if key in replace:
            text = replace[key].encode()
            out.append(data[start:value] + struct.pack("<Q", len(text)) + text)
        else:
            out.append(data[start:at])
    with open(target, "wb") as f:
        f.write(struct.pack("<4sIQQ", b"GGUF", version, 0, n_values) + b"".join(out) + b"\0" * 64)
