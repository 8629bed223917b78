#!/usr/bin/env python3
"""Writes toy.gguf: q4_1.gguf with a running state in each block (src/models/toy.c). For exactness only; nobody else has this family.

    /tmp/oracle/bin/python tests/oracle/make_toy.py tests/oracle/models
"""
import pathlib, sys
import gguf, numpy as np

folder = pathlib.Path(sys.argv[1])
r = gguf.GGUFReader(folder / "q4_1.gguf")
w = gguf.GGUFWriter(folder / "toy.gguf", "skipstone-toy")
for name, f in r.fields.items():
    if name.startswith("GGUF.") or name == "general.architecture":
        continue
    kind, value = f.types[0], f.contents()
    name = name.replace("llama.", "skipstone-toy.")
    if kind == gguf.GGUFValueType.ARRAY:
        w.add_array(name, value)
    else:
        w.add_key_value(name, value, kind)
rng = np.random.default_rng(9)
for t in r.tensors:
    w.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
for i in range(2):
    w.add_tensor(f"blk.{i}.state_norm.weight", (1 + 0.1 * rng.standard_normal(64)).astype(np.float32))
    w.add_tensor(f"blk.{i}.state_decay.weight", rng.uniform(0.2, 0.99, 64).astype(np.float32))
    w.add_tensor(f"blk.{i}.state_mix.weight", (0.5 * rng.standard_normal(64)).astype(np.float32))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
