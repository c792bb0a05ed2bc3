# %% [markdown]
# # Compile a network

# %%
from pathlib import Path

import numpy as np

import ansorpy as ap
from examples.notebooks.networks import write_classifier

network = write_classifier(Path("classifier.onnx"))
model = ap.compile(network, trials=64, db="gallery.db")
model

# %% [markdown]
# Call it with arrays; `run` is onnxruntime's interface.

# %%
image = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
scores = model(image)
[same] = model.run(["scores"], {"image": image})
int(scores.argmax()), bool((scores == same).all())

# %% [markdown]
# Its outputs beside onnxruntime's, and where the time of a run goes:

# %%
ap.verify(model, network)

# %%
for name, seconds in model.profile({"image": image}):
    print(f"{name:40} {seconds * 1e6:8.1f} us")

# %% [markdown]
# A trace of each thread, for [Perfetto](https://ui.perfetto.dev), and a library for other programs:

# %%
model.trace({"image": image}).save("classifier.trace.json")
print(f"wrote {model.export('classifier.so').name}")
