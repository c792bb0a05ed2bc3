"""Pools, regions and patches of images of any size, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.models import graph_model, node
from tests.frontend.sized import graph_at, sizes_at
from tests.graph.executor import random_feeds, run_network
from tests.peer import peer

RANGES: dict[str, Any] = {"n": (1, 3), "h": (4, 12), "w": (4, 12), "r": (1, 9)}
SIZES = [{"n": 1, "h": 4, "w": 7, "r": 1}, {"n": 3, "h": 12, "w": 4, "r": 9}]
IMAGE = ("n", 2, "h", "w")


def unpooled() -> ModelProto:
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Shape", ["x"], ["size"]),
        node("MaxPool", ["x"], ["best", "places"], **pool),
        node("MaxUnpool", ["best", "places", "size"], ["y"], **pool),
    ]
    return graph_model(nodes, {"x": IMAGE}, ["y"])


def regions(op_type: str, **attributes: Any) -> ModelProto:
    """Regions of a network's last image."""
    if op_type == "MaxRoiPool":
        one = node(op_type, ["x", "rois"], ["y"], **attributes)
        return graph_model([one], {"x": IMAGE, "rois": ("r", 5)}, ["y"])
    one = node(op_type, ["x", "rois", "images"], ["y"], **attributes)
    shapes: dict[str, tuple[int | str, ...]] = {"x": IMAGE, "rois": ("r", 4), "images": ("r",)}
    return graph_model([one], shapes, ["y"], types={"images": TensorProto.INT64})


def normalised() -> ModelProto:
    names = ["x", "s", "b", "m", "v"]
    square = node("Mul", ["raw", "raw"], ["v"])
    one = node("BatchNormalization", names, ["y"])
    shapes: dict[str, tuple[int | str, ...]] = {"x": IMAGE, "s": (2,), "b": (2,), "m": (2,)}
    return graph_model([square, one], {**shapes, "raw": (2,)}, ["y"])


def masked() -> ModelProto:
    """A network of several steps over a batch of any size, whose lengths are data."""
    rng = np.random.default_rng(3)
    held = {
        "w": rng.standard_normal((1, 9, 2), np.float32),
        "rw": rng.standard_normal((1, 9, 3), np.float32),
    }
    one = node("GRU", ["x", "w", "rw", "", "lengths"], ["y", "last"], hidden_size=3)
    types = {"lengths": TensorProto.INT32}
    return graph_model([one], {"x": (4, "n", 2), "lengths": ("n",)}, ["y", "last"], held, 17, types)


MODELS = {
    "unpooled": unpooled(),
    "aligned": regions("RoiAlign", output_height=2, output_width=3, sampling_ratio=2),
    "aligned_by_size": regions("RoiAlign", output_height=2, output_width=3),
    "largest_by_size": regions("RoiAlign", output_height=2, output_width=3, mode="max"),
    "pooled": regions("MaxRoiPool", pooled_shape=[2, 3]),
    "normalised": normalised(),
    "masked": masked(),
}


def drawn(
    model: ModelProto, feeds: dict[str, Any], sizes: Mapping[str, int], rng: np.random.Generator
) -> None:
    """Replace standard normal numbers in *feeds* where these would not do."""
    if "rois" in feeds:
        first = rng.uniform(0, 5, (sizes["r"], 2))
        corners = np.concatenate([first, first + rng.uniform(0, 6, first.shape)], 1)
        images = rng.integers(0, sizes["n"], sizes["r"])
        if "images" in feeds:
            feeds |= {"rois": corners.astype(np.float32), "images": images}
        else:
            both = np.concatenate([images[:, None], np.rint(corners)], 1)
            feeds["rois"] = both.astype(np.float32)
    if "lengths" in feeds:
        feeds["lengths"] = rng.integers(1, 5, sizes["n"]).astype(np.int32)


@pytest.mark.parametrize("case", MODELS)
def test_operators_on_images_of_any_size(case: str, rng: np.random.Generator) -> None:
    model = MODELS[case]
    names = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim} - {""}
    graph = load(model, dims={name: RANGES[name] for name in names})
    session = peer(model)
    for sizes in SIZES:
        network = partition(optimize(graph_at(graph, sizes_at(graph, sizes))))
        feeds = random_feeds(network, rng)
        drawn(model, feeds, sizes, rng)
        wanted = session.run(None, feeds)
        for got, want in zip(run_network(network, feeds), wanted, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)
