# %% [markdown]
# # A quantised network
#
# onnxruntime quantises the network; ansorpy compiles its 8-bit products to dot products.

# %%
from pathlib import Path

import numpy as np

import ansorpy as ap
from examples.notebooks.networks import quantise, write_classifier

network = write_classifier(Path("classifier.onnx"))
small = quantise(network, Path("classifier.int8.onnx"))
network.stat().st_size, small.stat().st_size

# %%
full = ap.compile(network, trials=64, db="gallery.db")
quantised = ap.compile(small, trials=64, db="gallery.db")
quantised

# %% [markdown]
# Both give almost the same scores, and the quantised one what onnxruntime gives:

# %%
image = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
difference = np.abs(full(image) - quantised(image)).max() / np.abs(full(image)).max()
print(f"largest difference: {difference:.1%} of the largest score")

# %%
ap.verify(quantised, small, tolerance=0.05)
