# SPDX-License-Identifier: MIT
"""ggml.csv: MXFP4 blocks quantized by the gguf package of ggml-org/llama.cpp. Inf is left out: the
package casts an infinite exponent to a byte, which has no defined result."""
import importlib.metadata
import numpy as np
from gguf.quants import MXFP4
from make_blocks import blocks, line

with open("ggml.csv", "w") as out:
    out.write("# made by gguf %s: make_ggml.py\n" % importlib.metadata.version("gguf"))
    out.write("# recipe,elements as f32 bits,scale,codes\n")
    for kind, x in blocks(32, each=12, seed=7):
        if kind in ("inf", "nan"):
            continue
        row = MXFP4.quantize_blocks(x.reshape(1, 32))[0]
        codes = np.concatenate([row[1:] & 15, row[1:] >> 4])
        out.write(line("GGML:mxfp4", x, row[:1], codes))
