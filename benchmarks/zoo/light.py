"""The onnx package's ``light`` networks with seeded random weights."""

from __future__ import annotations

from pathlib import Path

import onnx

from ansorpy.evaluation.onnx_inputs import read_model
from ansorpy.evaluation.randomize import random_weights

__all__ = ["NAMES", "light_model"]

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = tuple(sorted(p.stem.removeprefix("light_") for p in FOLDER.glob("light_*.onnx")))


def light_model(name: str, seed: int) -> onnx.ModelProto:
    """The network *name* (one of ``NAMES``) with weights drawn from *seed*.

    The package's models have constant weights, with which nearly any program computes the right
    numbers; random ones make comparisons meaningful.
    """
    return random_weights(read_model(FOLDER / f"light_{name}.onnx"), seed)
