"""Small libraries to be packaged: of fixed shapes, and of open ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ansorpy as ap
from tests.runtime import programs


def fixed(
    folder: Path, rng: np.random.Generator
) -> tuple[Path, programs.Floats, list[programs.Floats]]:
    """``net.so``, an input for it, and its outputs."""
    model, layers = programs.model(rng)
    x = programs.feed(rng)
    return model.export(folder / "net.so"), x, list(programs.expected(layers, x))


def twice(folder: Path, file: str = "twice.so") -> Path:
    """The library *file*, which doubles from 16 to 512 rows of 64 elements."""
    n = ap.dim("n", 16, 512)
    x = ap.placeholder((n, 64), name="x")
    y = ap.compute((n, 64), lambda i, j: x[i, j] * 2.0, name="y")
    return ap.build(ap.State.initial([x, y])).export(folder / file)
