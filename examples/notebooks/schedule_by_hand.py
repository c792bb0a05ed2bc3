# %% [markdown]
# # Write a schedule by hand
#
# A `State` is an immutable schedule. Each primitive returns a new one, and shows its loops.

# %%
import numpy as np

import ansorpy as ap

A = ap.placeholder((128, 96), name="A")
B = ap.placeholder((96, 160), name="B")
k = ap.reduce_axis(96, name="k")
C = ap.compute((128, 160), lambda i, j: ap.sum(A[i, k] * B[k, j], axis=k), name="C")
state = ap.State.initial([A, B, C])
state

# %% [markdown]
# Tiles of 4 rows and 32 columns, whose sums stay in vector registers:

# %%
state, (io, ii) = state.split("C", "i", (4,))
state, (jo, ji) = state.split("C", "j", (32,))
state = state.reorder("C", [io, jo, "k", ii, ji]).unroll("C", ii).vectorize("C", [ji])
state = state.parallel("C", [io])
state

# %% [markdown]
# `check` proves that the schedule computes its definition.

# %%
print(state.check())

# %%
kernel = ap.build(state)
rng = np.random.default_rng(0)
a = rng.standard_normal((128, 96), dtype=np.float32)
b = rng.standard_normal((96, 160), dtype=np.float32)
np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)
print(kernel.program)

# %% [markdown]
# The history is the Python that makes the schedule again.

# %%
print(state.history)
