"""Resize of images of any size, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.models import graph_model, node
from tests.frontend.sized import assert_same_at, import_sized
from tests.graph.executor import run_network

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


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[0.7, 1 / 3], [2.2, 1.5]])
def test_scales_that_are_fractions(
    scales: list[float], mode: str, rng: np.random.Generator
) -> None:
    """float32 has few of them; the product with a size is rounded, too."""
    one = node("Resize", ["x", "", "all"], ["y"], mode=mode)
    held = {"all": np.asarray([1, 1, *scales], np.float32)}
    model = graph_model([one], {"x": (1, 2, "h", "w")}, ["y"], held, opset=19)
    graph = import_sized(model, h=(2, 40), w=(3, 300))
    assert_same_at(model, graph, rng, [{"h": 10, "w": 3}, {"h": 30, "w": 299}, {"h": 7, "w": 11}])


def test_scales_whose_products_are_rounded_otherwise_are_refused() -> None:
    one = node("Resize", ["x", "", "all"], ["y"])
    held = {"all": np.asarray([1, 1, 1.3, 1], np.float32)}
    model = graph_model([one], {"x": (1, 2, "h", "w")}, ["y"], held, opset=19)
    with pytest.raises(UnsupportedModel, match="scale 1.3 of h"):
        import_sized(model, h=(2, 400), w=(3, 4))


def test_machine_code_has_the_weights_of_known_sizes(rng: np.random.Generator) -> None:
    model = to_one_size("cubic", coordinate_transformation_mode="asymmetric")
    made = ap.compile(model, dims={"h": (1, 200), "w": (3, 4)}, effort="none", threads=1)
    for h in (1, 5, 11, 131, 199):
        x = rng.standard_normal((1, 2, h, 3), np.float32)
        known = load(model, dims={"h": h, "w": 3})
        (want,) = run_network(partition(optimize(known)), {"x": x})
        (found,) = made.run(None, {"x": x})
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)


def test_filters_that_would_be_too_wide_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="antialias=1"):
        import_sized(to_one_size("cubic", antialias=1), h=(2, 12), w=(3, 4096))


def test_no_size_is_proposed_where_data_decide() -> None:
    nodes = [
        node("Neg", ["s"], ["scales"]),
        node("Resize", ["x", "", "scales"], ["y"], mode="linear", antialias=1),
    ]
    model = graph_model(nodes, {"x": (1, 2, 3, 400), "s": (4,)}, ["y"], opset=19)
    with pytest.raises(UnsupportedModel) as caught:
        load(model, bounds={"scales": [(1, 1), (1, 1), (1, 1), (0, 2)]})
    [row] = caught.value.rows
    assert (row.attribute, row.advice) == ("antialias=1", "data decide about scales.size.3")
