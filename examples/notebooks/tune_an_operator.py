# %% [markdown]
# # Tune an operator
#
# Say what to compute; ansorpy searches for loops that compute it fast on this machine.

# %%
from collections.abc import Callable
from time import perf_counter

import numpy as np

import ansorpy as ap

A = ap.placeholder((256, 256), name="A")
B = ap.placeholder((256, 256), name="B")
k = ap.reduce_axis(256, name="k")
C = ap.compute((256, 256), lambda i, j: ap.sum(A[i, k] * B[k, j], axis=k), name="C")
D = ap.compute((256, 256), lambda i, j: ap.maximum(C[i, j], 0.0), name="D")
ap.State.initial([A, B, D])

# %% [markdown]
# Every trial is kept in the database: run the cell again, and the search goes on where it ended.

# %%
kernel = ap.tune([A, B, D], trials=64, db="gallery.db")
kernel

# %% [markdown]
# A kernel is a function on arrays of numpy, torch, jax or any library with DLPack.

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 256, 256), dtype=np.float32)
d = kernel(a, b)
float(np.abs(d - np.maximum(a @ b, 0)).max())

# %% [markdown]
# For comparison, the same definition without a schedule:

# %%
plain = ap.build([A, B, D])


def milliseconds(kernel: Callable[..., object]) -> float:
    """The least time of five calls."""
    times = []
    for _ in range(5):
        start = perf_counter()
        kernel(a, b)
        times.append(perf_counter() - start)
    return min(times) * 1e3


print(f"{milliseconds(plain):.2f} ms as written, {milliseconds(kernel):.2f} ms tuned")
