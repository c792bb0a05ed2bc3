"""Every operator with all axes of its operands left open, beside onnxruntime."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load_with_ranges
from ansorpy.frontend.onnx.loading import Imported
from tests.frontend.sized import assert_same_at
from tests.frontend.test_operators import CASES

REFUSED = {
    "conv-computed_weight": "choose one size",  # the kernel is a window, which needs numbers
    "transposed-computed_weight": "choose one size",
    "transposed-cut": "they crop the whole image",
    "transposed-shape": "choose one size",
    "movement-depth_to_space": "the image has",
    "movement-depth_to_space_crd": "the image has",
    "movement-space_to_depth": "the image is",
    "movement-squeeze_all": "either may be larger; choose one size",
    "movement-split": "sum up to",
    "movement-split_even": "sum up to",
    "gather-elements": "reach beyond data",
    "gather-nd_batch": "of data",
    "group": "choose one size",
}


def opened(model: ModelProto) -> ModelProto:
    """*model*, in which every axis of every input is a dimension of its own."""
    made = deepcopy(model)
    del made.graph.value_info[:]
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    for number, info in enumerate(made.graph.input):
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"x{number}_{axis}"
    return made


def some_sizes(imported: Imported) -> dict[str, int]:
    """Small sizes of the dimensions, which differ from each other."""
    found = {}
    for number, dim in enumerate(imported.ranges):
        least = max(dim.low, dim.step)
        found[dim.name] = min(
            least + (2 + number % 3) * (dim.step if dim.step == 1 else 0), dim.high
        )
    return found


@pytest.mark.parametrize("name", CASES)
def test_open_axes(name: str) -> None:
    model = opened(CASES[name])
    if name in REFUSED:
        with pytest.raises(UnsupportedModel, match=REFUSED[name]):
            load_with_ranges(model)
        return
    imported = load_with_ranges(model)
    assert_same_at(model, imported.graph, np.random.default_rng(3), [some_sizes(imported)])
