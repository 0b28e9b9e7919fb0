# SPDX-License-Identifier: MIT
"""torchao.csv: the functions of pytorch/ao's own source, run over torch_stand_in.py.

    python make_torchao.py DIRECTORY_WITH_torchao

The RCEIL rows follow eager mode. A block is left out where eager mode's ceil of a rounded log2 leaves
the exact rule (the preset follows the instruction that compiled mode uses), and FP4 codes of NaN
elements are left out with their block: they are an accident of a bit trick."""
import ast
import sys
from enum import Enum
from typing import Optional, Union  # noqa: F401  (names that the sources use)
import numpy as np
import torch_stand_in
from make_blocks import blocks, line

torch = torch_stand_in.module()
base = sys.argv[1] + "/torchao/prototype/"
names = {"torch": torch, "Tensor": torch.Tensor, "Optional": Optional, "Union": Union, "is_fake": lambda x: False,
         "MBITS_F32": 23, "EBITS_F32": 8, "SBITS": 1, "EBITS_F4_E2M1": 2, "MBITS_F4_E2M1": 1, "MBITS_F8_E4M3": 3,
         "MBITS_F8_E5M2": 2, "MBITS_F6_E2M3": 3, "MBITS_F6_E3M2": 2}


def take(path, wanted):
    for node in ast.parse(open(base + path).read()).body:
        named = getattr(node, "name", None) or (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None))
        if named and (wanted is None or named in wanted):
            exec(compile(ast.Module([node], []), path, "exec"), names)


class ScaleCalculationMode(Enum):
    FLOOR = 1
    CEIL = 2
    EVEN = 3
    RCEIL = 4


names["ScaleCalculationMode"] = ScaleCalculationMode
take("mx_formats/constants.py", None)
take("custom_fp_utils.py", {"_n_ones", "_f32_to_floatx_unpacked"})
take("mx_formats/kernels.py", {"f32_to_f4_unpacked", "pack_uint4", "down_size"})
take("mx_formats/mx_tensor.py", {"_to_mx_rceil", "to_mx"})
names["E4M3_EPS"] = 2.0**-6
take("mx_formats/nvfp4_tensor.py", {"nvfp4_quantize"})


def codes_of(data, fp4):
    data = np.asarray(data).reshape(-1).view(np.uint8)
    return np.stack([data & 15, data >> 4], 1).reshape(-1) if fp4 else data


with open("torchao.csv", "w") as out, np.errstate(all="ignore"):
    out.write("# made by the source of pytorch/ao 0.18.0 over torch_stand_in.py: make_torchao.py\n")
    out.write("# recipe,elements as f32 bits,scale,codes\n")
    for name, element, largest in (("mxfp4", torch.float4_e2m1fn_x2, 6), ("mxfp8-e4m3", torch.float8_e4m3fn, 448),
                                   ("mxfp8-e5m2", torch.float8_e5m2, 57344)):
        for mode in ScaleCalculationMode:
            for kind, x in blocks(32, each=3, seed=mode.value):
                if kind == "nan":
                    if name != "mxfp8-e4m3":
                        continue  # E5M2's NaN code would be ml_dtypes', not torch's
                    x = np.where(np.isnan(x), np.float32(np.nan), x)
                t = np.max(np.abs(x)) / np.float32(largest)
                if mode == ScaleCalculationMode.RCEIL and 0 < t < np.inf:
                    if np.ceil(np.log2(t)) != np.ceil(np.log2(np.float64(t))):
                        continue
                scale, data = names["to_mx"](x.reshape(1, 32).view(torch.Tensor), element, 32, mode)
                codes = codes_of(data if name == "mxfp4" else np.asarray(data).astype(element), name == "mxfp4")
                out.write(line("TORCHAO-%s:%s" % (mode.name, name), x, np.asarray(scale).reshape(1).view(np.uint8), codes))
    for kind, x in blocks(16):
        if kind == "nan":
            continue
        scale, data = names["nvfp4_quantize"](x.reshape(1, 16).view(torch.Tensor))
        out.write(line("TORCHAO:nvfp4", x, np.asarray(scale).reshape(1).view(np.uint8), codes_of(data, True)))
