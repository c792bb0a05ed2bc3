"""Sound files to damage: a small network, its library, and the database it was tuned with."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import onnx

from tests.campaigns.inputs.verbs import run_verb, surroundings
from tests.frontend.models import graph_model, node

__all__ = ["DATABASE", "LIBRARY", "NETWORK", "sound_files", "sound_network"]

NETWORK, LIBRARY, DATABASE = "sound.onnx", "sound.so", "sound.db"


def sound_network(path: Path) -> None:
    """Write a network of two tasks to *path*."""
    nodes = [
        node("MatMul", ["x", "w"], ["t"]),
        node("Add", ["t", "b"], ["u"]),
        node("Relu", ["u"], ["v"]),
        node("Softmax", ["v"], ["y"], axis=0),
    ]
    rng = np.random.default_rng(3)
    held = {"w": rng.standard_normal((7, 5)), "b": rng.standard_normal(5)}
    floats = {name: array.astype(np.float32) for name, array in held.items()}
    onnx.save(graph_model(nodes, {"x": (3, 7)}, ["y"], floats), path)


@cache
def sound_files() -> Path:
    """A folder with the network, its library, and its database with a few measured programs.

    It is made once in each process, because measuring takes seconds.
    """
    folder = Path(mkdtemp(prefix="ansorpy-sound-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sound_network(folder / NETWORK)
    with surroundings(folder, folder):
        run_verb(
            ["compile", NETWORK, "-o", LIBRARY, "--db", DATABASE, "--trials", "6", "--threads", "1"]
        )
    return folder
