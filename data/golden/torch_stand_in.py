# SPDX-License-Identifier: MIT
"""As much of torch as the quantizers of pytorch/ao call, over numpy and ml_dtypes, so that their
own source can run without torch. f32 arithmetic is numpy's; casts to FP8 are ml_dtypes'."""
import types
import ml_dtypes
import numpy as np


class Tensor(np.ndarray):
    def unsqueeze(self, axis):
        return np.expand_dims(self, axis).view(Tensor)

    def squeeze(self, axis):
        return np.ndarray.squeeze(self, axis)

    def __and__(self, other):
        if self.dtype == np.int32 and isinstance(other, int):
            other = np.uint32(other).astype(np.int32)  # 0x80000000 is the sign bit
        return np.ndarray.__and__(self, other)

    def contiguous(self):
        return np.ascontiguousarray(self).view(Tensor)

    def is_contiguous(self):
        return True

    def float(self):
        return self.to(np.float32)

    def size(self, axis):  # numpy's attribute of that name is not used by the sources
        return self.shape[axis]

    def to(self, dtype):
        with np.errstate(all="ignore"):
            if np.dtype(dtype) == np.uint8 and self.dtype.kind in "iu":
                return (np.asarray(self) & 0xFF).astype(np.uint8).view(Tensor)
            return np.asarray(self).astype(dtype).view(Tensor)

    def view(self, *kind):
        if len(kind) == 1 and (isinstance(kind[0], type) or isinstance(kind[0], np.dtype)):
            return np.ndarray.view(self, kind[0])
        return np.reshape(self, kind[0] if isinstance(kind[0], tuple) else kind)


def wrap(x):
    return np.asarray(x).view(Tensor)


def tensor(value, dtype=np.float32, device=None):
    return wrap(np.array(value, dtype=dtype))


def where(condition, a, b):
    # a Python scalar takes the other operand's type, as in torch
    a = np.asarray(a, dtype=None if isinstance(a, np.ndarray) else np.asarray(b).dtype)
    b = np.asarray(b, dtype=None if isinstance(b, np.ndarray) else a.dtype)
    return wrap(np.where(condition, a, b))


def clamp(x, min=None, max=None):  # keeps NaN
    x = np.asarray(x)
    low = x if min is None else np.maximum(x, x.dtype.type(min))
    return wrap(low if max is None else np.minimum(low, x.dtype.type(max)))


def module():
    d = np.dtype  # dtypes are compared by identity
    t = types.SimpleNamespace(Tensor=Tensor, dtype=object, float=d(np.float32), float32=d(np.float32),
                              bfloat16=d(ml_dtypes.bfloat16), int32=d(np.int32), uint8=d(np.uint8),
                              int16=d(np.int16), float8_e4m3fn=d(ml_dtypes.float8_e4m3fn),
                              float8_e5m2=d(ml_dtypes.float8_e5m2), float8_e8m0fnu=d(ml_dtypes.float8_e8m0fnu),
                              float4_e2m1fn_x2="e2m1x2")
    t.amax = lambda x, axis=None, dim=None: wrap(np.max(x, axis=axis if dim is None else dim))
    t.abs = lambda x: wrap(np.abs(x))
    t.isnan = lambda x: np.isnan(x)
    t.isinf = lambda x: np.isinf(x)
    t.log2 = lambda x: wrap(np.log2(x))
    t.ceil = lambda x: wrap(np.ceil(x))
    t.exp2 = lambda x: wrap(np.exp2(x))
    t.bitwise_right_shift = lambda x, n: wrap(np.right_shift(x, n))
    t.bitwise_left_shift = lambda x, n: wrap(np.left_shift(x, n))
    t.logical_and, t.logical_or, t.logical_not = np.logical_and, np.logical_or, np.logical_not
    t.full_like = lambda x, value, dtype: wrap(np.full(x.shape, value, dtype))
    t.finfo = ml_dtypes.finfo
    t.tensor, t.where, t.clamp = tensor, where, clamp
    t._dynamo = types.SimpleNamespace(is_compiling=lambda: False)
    t.compiler = types.SimpleNamespace(is_compiling=lambda: False)
    return t
