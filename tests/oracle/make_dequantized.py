#!/usr/bin/env python3
"""Writes dequantized.bin: random blocks of each tensor type and the floats that the gguf package makes of them.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install gguf numpy
    /tmp/oracle/bin/python tests/oracle/make_dequantized.py tests/oracle/dequantized.bin

Records: u32 type, u32 bytes, u32 n, the bytes, n float32. Scales are random f16 patterns without infinities and NaNs, subnormals and zeros included.
"""
import struct, sys
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

SCALES = {T.Q4_0: 1, T.Q4_1: 2, T.Q5_0: 1, T.Q5_1: 2, T.Q8_0: 1}
rng = np.random.default_rng(20261201)


def finite_halves(n):
    h = rng.integers(0, 1 << 16, n, dtype=np.uint16)
    h[: n // 8] &= 0x83FF  # zeros and subnormals
    h[(h & 0x7C00) == 0x7C00] ^= 0x4000
    return h


with open(sys.argv[1], "wb") as out:
    for kind in (T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
        block, size = GGML_QUANT_SIZES[kind]
        n = 64 if block > 1 else 512
        if kind == T.F32:
            data = rng.standard_normal(n).astype(np.float32).view(np.uint8)
        elif kind in (T.F16, T.BF16):
            data = finite_halves(n).view(np.uint8)
        else:
            data = rng.integers(0, 256, (n, size), dtype=np.uint8)
            data[:, : 2 * SCALES[kind]] = finite_halves(n * SCALES[kind]).reshape(n, -1).view(np.uint8)
        floats = data.view(np.float32) if kind == T.F32 else data.view(np.float16).astype(np.float32) if kind == T.F16 else dequantize(data.reshape(1, -1), kind).reshape(-1)
        raw = data.tobytes()
        out.write(struct.pack("<III", int(kind), len(raw), floats.size) + raw + floats.astype("<f4").tobytes())
