"""Regions of images, patches and moved samples, against onnxruntime and onnx's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    random_feeds,
    run_network,
    run_reference,
)
from tests.peer import peer


def aligned(count: int, opset: int = 16, **attributes: Any) -> ModelProto:
    one = node("RoiAlign", ["x", "rois", "images"], ["y"], **attributes)
    shapes: dict[str, tuple[int, ...]] = {"x": (2, 3, 9, 7), "rois": (count, 4), "images": (count,)}
    return graph_model([one], shapes, ["y"], opset=opset, types={"images": TensorProto.INT64})


def regions(count: int, rng: np.random.Generator, integers: bool = False) -> Array:
    """Corners of regions, some of which reach beyond an image of 9 by 7, or are empty."""
    first = rng.uniform(-4, 8, (count, 2))
    found = np.concatenate([first, first + rng.uniform(-1, 9, (count, 2))], 1)
    return np.asarray(np.rint(found) if integers else found, np.float32)


def fed(count: int, rng: np.random.Generator) -> dict[str, Array]:
    return {
        "x": rng.standard_normal((2, 3, 9, 7), np.float32), "rois": regions(count, rng),
        "images": rng.integers(0, 2, count),
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(
    ("opset", "attributes"),
    [
        (16, {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
        (16, {"coordinate_transformation_mode": "output_half_pixel", "sampling_ratio": 3}),
        (16, {"output_height": 5, "output_width": 4, "sampling_ratio": 1, "spatial_scale": 0.5}),
        (10, {"output_height": 2, "output_width": 2, "sampling_ratio": 2}),
    ],
)
def test_regions_are_aligned(
    opset: int, attributes: dict[str, Any], mode: str, rng: np.random.Generator
) -> None:
    model = aligned(11, opset, mode=mode, **attributes)
    feeds = fed(11, rng)
    (got,) = run_network(compiled(model), feeds)
    session = peer(model)
    (want,) = session.run(None, feeds)
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("centres", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (7, 7)])
def test_samples_may_follow_from_the_size_of_a_region(
    mode: str, centres: str, size: tuple[int, int], rng: np.random.Generator
) -> None:
    model = aligned(
        27, coordinate_transformation_mode=centres, mode=mode, output_height=size[0],
        output_width=size[1],
    )  # fmt: skip
    feeds = fed(27, rng)
    feeds["rois"][:9] = np.rint(feeds["rois"][:9] * 2) / 2  # samples at elements
    feeds["rois"][9] = 0, 0, 21, 21  # in sevenths, three samples each
    feeds["x"][1] = -np.abs(feeds["x"][1])
    (got,) = run_network(compiled(model), feeds)
    (want,) = peer(model).run(None, feeds)
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_regions_are_pooled(scale: float, rng: np.random.Generator) -> None:
    shapes = [(2, 3, 9, 7), (13, 5)]
    model = operator_model("MaxRoiPool", shapes, pooled_shape=[3, 2], spatial_scale=scale)
    images = rng.integers(0, 2, (13, 1)).astype(np.float32)
    rois = np.concatenate([images, regions(13, rng, integers=True)], 1)
    feeds: dict[str, Array] = {"x0": rng.standard_normal(shapes[0], np.float32), "x1": rois}
    (got,) = run_network(compiled(model), feeds)
    (want,) = peer(model).run(None, feeds)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ((5, 5), (1, 5), {}),
        ((7, 6), (3, 2), {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
        ((8, 9), (2, 3), {"dilations": [3, 2], "strides": [1, 3]}),
        ((5,), (3,), {"pads": [2, 1]}),
        ((3, 4, 5), (1, 2, 2), {"strides": [1, 2, 1]}),
    ],
)
def test_patches_become_images(
    image: tuple[int, ...], block: tuple[int, ...], attributes: dict[str, Any],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    rank = len(image)
    pads, strides, dilations = (
        attributes.get(name, [usual] * count)
        for name, usual, count in zip(
            ("pads", "strides", "dilations"), (0, 1, 1), (2 * rank, rank, rank), strict=True
        )
    )
    counts = [
        (image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1
        for d in range(rank)
    ]
    shape = (2, 3 * int(np.prod(block)), int(np.prod(counts)))
    held = [np.asarray(image, np.int64), np.asarray(block, np.int64)]
    model = operator_model("Col2Im", [shape], held, opset=18, **attributes)
    assert_same_as_onnxruntime(model, rng)


def test_patches_must_fit_their_image() -> None:
    held = [np.asarray([5, 5], np.int64), np.asarray([2, 2], np.int64)]
    with pytest.raises(UnsupportedModel, match="4 elements for each channel and 16 places"):
        load(operator_model("Col2Im", [(1, 4, 15)], held, opset=18))


def test_windows_must_fit_their_image() -> None:
    held = [np.asarray([2, 2], np.int64), np.asarray([3, 2], np.int64)]
    with pytest.raises(UnsupportedModel, match=r"a window of \(3, 2\) does not fit into \(2, 2\)"):
        load(operator_model("Col2Im", [(1, 6, 1)], held, opset=18))
    shapes: dict[str, tuple[int | str, ...]] = {
        "x": (1, 1, "n", 5),
        "w": (1, 1, 3, 3),
        "o": (1, 18, "m", 3),
    }
    model = graph_model([node("DeformConv", ["x", "w", "o"], ["y"])], shapes, ["y"], opset=19)
    with pytest.raises(UnsupportedModel, match=r"does not fit into \(n, 5\)"):
        load(model, dims={"n": (1, 9), "m": (1, 7)})


@pytest.mark.parametrize(
    ("groups", "shifted", "masked", "attributes"),
    [
        (1, 1, False, {}),
        (2, 2, True, {"strides": [2, 1], "pads": [1, 0, 1, 1]}),
        (1, 4, True, {"dilations": [2, 1], "pads": [2, 1, 0, 0]}),
    ],
)
def test_convolutions_of_moved_samples(
    groups: int, shifted: int, masked: bool, attributes: dict[str, Any], rng: np.random.Generator
) -> None:
    (n, c, h, w), out, kernel = (2, 4, 5, 4), 2, (3, 2)
    pads, strides, dilations = (
        attributes.get(name, usual)
        for name, usual in (("pads", [0] * 4), ("strides", [1] * 2), ("dilations", [1] * 2))
    )
    windows = [
        (size + pads[d] + pads[d + 2] - dilations[d] * (kernel[d] - 1) - 1) // strides[d] + 1
        for d, size in enumerate((h, w))
    ]
    shapes: dict[str, tuple[int, ...]] = {
        "x": (n, c, h, w), "weight": (out, c // groups, *kernel),
        "offset": (n, shifted * 12, *windows), "bias": (out,), "mask": (n, shifted * 6, *windows),
    }  # fmt: skip
    names = [*shapes][: 5 if masked else 4]
    one = node(
        "DeformConv", names, ["y"], group=groups, offset_group=shifted, kernel_shape=kernel,
        **attributes,
    )  # fmt: skip
    model = graph_model([one], {name: shapes[name] for name in names}, ["y"], opset=19)
    network = compiled(model)
    feeds = random_feeds(network, rng)
    feeds["offset"] = feeds["offset"] * np.float32(1.5)
    (got,) = run_network(network, feeds)
    (want,) = run_reference(model, feeds)
    np.testing.assert_allclose(got, want, atol=2e-5)
