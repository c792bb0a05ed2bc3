# %% [markdown]
# # Embed a network in C
#
# A library depends on libc only. Its header declares three functions; an example calls them.

# %%
import shutil
import subprocess
from pathlib import Path

import ansorpy as ap
from examples.notebooks.networks import write_classifier

network = write_classifier(Path("classifier.onnx"))
model = ap.compile(network, trials=64, db="gallery.db")
model.export("classifier.so")
print(Path("classifier.h").read_text())

# %%
print(Path("classifier_example.c").read_text())

# %%
compiler = shutil.which("cc")
if compiler is None:
    print("there is no C compiler: no cc is on the PATH")
else:
    sources, options = ["classifier_example.c", "classifier.so"], ["-Wl,-rpath,.", "-o", "example"]
    subprocess.run([compiler, *sources, *options], check=True)
    done = subprocess.run(["./example"], check=True, capture_output=True, text=True)
    print(done.stdout)

# %% [markdown]
# Or take it as C files, for machines that LLVM does not know:

# %%
compiled = ap.compile(network, effort="none", target="c", db="gallery.db")
compiled.export("classifier_c.c")
print("\n".join(Path("classifier_c.c").read_text().splitlines()[:24]))
