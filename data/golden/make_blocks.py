# SPDX-License-Identifier: MIT
"""Input blocks of the golden files: drawn for ties, binade edges, underflow and specials."""
import numpy as np

GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
MIDDLES = (GRID[:-1] + GRID[1:]) / np.float32(2)


def nudge(rng, x):
    bits = np.float32(x).view(np.uint32) + np.uint32(1) * rng.integers(-1, 2)
    return np.uint32(bits).view(np.float32)


def with_amax(rng, amax, n):
    x = (rng.random(n) * amax).astype(np.float32) * rng.choice([-1, 1], n)
    x[rng.integers(n)] = amax * rng.choice([-1, 1])
    return x.astype(np.float32)


def blocks(n, each=5, seed=20261129):
    """Yield (kind, x): x is float32[n]."""
    rng = np.random.default_rng(seed + n)
    sign = lambda: rng.choice(np.array([-1, 1], np.float32), n)
    for i in range(each):
        normal = rng.standard_normal(n).astype(np.float32)
        yield "normal", normal
        yield "bf16", (normal.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        for kind, scale in (("power", np.float32(2.0 ** rng.integers(-30, 30))),
                            ("e4m3", np.float32((8 + rng.integers(8)) * 2.0 ** rng.integers(-9, 5)))):
            x = np.array([nudge(rng, m * scale) for m in rng.choice(MIDDLES, n)], np.float32) * sign()
            x[rng.integers(n)] = 6 * scale
            yield "midpoints-" + kind, x
            y = rng.choice(GRID, n) * scale * sign()
            y[rng.integers(n)] = -6 * scale
            yield "requantised-" + kind, y.astype(np.float32)
        yield "edge-pow2", with_amax(rng, nudge(rng, 2.0 ** rng.integers(-120, 120)), n)
        yield "edge-six", with_amax(rng, nudge(rng, 6 * 2.0 ** rng.integers(-120, 120)), n)
        yield "underflow", with_amax(rng, nudge(rng, 6 * rng.integers(1, 40) * 2.0**-12), n)
        yield "overflow", with_amax(rng, nudge(rng, 2400 + 8 * rng.integers(80)), n)
        yield "tiny", with_amax(rng, np.float32(2.0 ** rng.integers(-149, -120)), n)
        yield "huge", with_amax(rng, np.float32(2.0 ** rng.integers(110, 128)), n)
    zeros = np.zeros(n, np.float32)
    yield "zeros", zeros
    yield "minus-zero", -zeros
    nan = normal.copy()
    nan[n // 3] = np.nan
    yield "nan", nan
    inf = normal.copy()
    inf[n // 2] = -np.inf
    yield "inf", inf


def line(recipe, x, scale, codes):
    return "%s,%s,%s,%s\n" % (recipe, "".join("%08x" % b for b in np.asarray(x, np.float32).view(np.uint32)),
                              "".join("%02x" % b for b in scale), "".join("%02x" % c for c in codes))
