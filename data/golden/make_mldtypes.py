# SPDX-License-Identifier: MIT
"""mldtypes.csv: casts by jax-ml/ml_dtypes, composed by f32 division in numpy.

A NaN that numpy's division makes carries the processor's sign (negative on x86); it is made
positive here, since it is not ml_dtypes that chose it."""
import ml_dtypes
import numpy as np
from make_blocks import blocks, line

F32 = np.float32
LARGEST = {"nvfp4": 6, "mxfp4": 6, "mxfp8-e4m3": 448, "mxfp8-e5m2": 57344}
ELEMENT = {"nvfp4": ml_dtypes.float4_e2m1fn, "mxfp4": ml_dtypes.float4_e2m1fn,
           "mxfp8-e4m3": ml_dtypes.float8_e4m3fn, "mxfp8-e5m2": ml_dtypes.float8_e5m2}


def quantize(x, name):
    scale_type = ml_dtypes.float8_e4m3fn if name == "nvfp4" else ml_dtypes.float8_e8m0fnu
    with np.errstate(all="ignore"):
        amax = np.max(np.abs(x))
        if np.isnan(amax):
            amax = F32(np.nan)  # positive: a scale has no sign
        s = (amax / F32(LARGEST[name])).astype(scale_type)
        v = x / s.astype(F32)
        made = np.isnan(v) & ~np.isnan(x)
        v = np.where(made, F32(np.nan), v)
        kept = np.isnan(x)
        v[kept] = np.copysign(F32(np.nan), x[kept])
        codes = v.astype(ELEMENT[name]).view(np.uint8)
    return s.reshape(1).view(np.uint8), codes & (0x0F if name.endswith("fp4") else 0xFF)


with open("mldtypes.csv", "w") as out:
    out.write("# made by jax-ml/ml_dtypes %s with numpy %s: make_mldtypes.py\n" % (ml_dtypes.__version__, np.__version__))
    out.write("# recipe,elements as f32 bits,scale,codes\n")
    for name in LARGEST:
        for kind, x in blocks(16 if name == "nvfp4" else 32):
            t = np.max(np.abs(x)) / F32(LARGEST[name])
            if name != "nvfp4" and 2.0**-127 < t < 2.0**-126:
                continue  # always up in ml_dtypes 0.6.0; the preset does not copy that
            out.write(line("MLDTYPES:" + name, x, *quantize(x, name)))
