"""Resize of images of any size, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ansorpy.errors import UnsupportedModel
from tests.frontend.models import graph_model, node
from tests.frontend.sized import assert_same_at, import_sized

SIZES = [{"h": 3, "w": 21}, {"h": 9, "w": 5}, {"h": 7, "w": 11}]


def to_one_size(mode: str, **attributes: Any) -> Any:
    one = node("Resize", ["x", "", "", "all"], ["y"], mode=mode, **attributes)
    held = {"all": np.asarray([1, 2, 7, 11])}
    return graph_model([one], {"x": (1, 2, "h", "w")}, ["y"], held, opset=19)


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(
    "given",
    [
        {"mode": "cubic"},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1},
    ],
)
def test_images_of_any_size_are_resized_to_one(
    given: dict[str, Any], coordinates: str, rng: np.random.Generator
) -> None:
    if given.get("antialias") and coordinates != "half_pixel":
        pytest.skip("onnxruntime has antialiasing for half pixels only")
    model = to_one_size(coordinate_transformation_mode=coordinates, **given)
    graph = import_sized(model, h=(2, 12), w=(3, 24))
    assert_same_at(model, graph, rng, SIZES)


def test_filters_that_would_be_too_wide_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="antialias=1"):
        import_sized(to_one_size("cubic", antialias=1), h=(2, 12), w=(3, 4096))
