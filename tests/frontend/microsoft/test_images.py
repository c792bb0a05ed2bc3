"""Images whose channels are last, and regions of images, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, both, model_of, normal
from tests.graph.executor import run_network


def found(model: ModelProto, feeds: dict[str, Array]) -> Array:
    return run_network(partition(optimize(load(model))), feeds)[0]


def crops(size: tuple[int, int]) -> dict[str, Any]:
    corners = [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.9, 0.8, 0.2, 0.1], [-0.3, 0.2, 1.2, 1.4]]
    return {
        "x": normal(0, 2, 3, 7, 5), "rois": np.array(corners, np.float32),
        "images": np.array([0, 1, 1, 0], np.int32), "size": np.array(size, np.int32),
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(4, 6), (1, 3), (7, 5)])
def test_crops(size: tuple[int, int], mode: str) -> None:
    assert_as_onnxruntime(
        "CropAndResize", crops(size), None, ["size"], 1e-4, mode=mode, extrapolation_value=0.25
    )


def test_the_size_of_crops_is_known() -> None:
    with pytest.raises(UnsupportedModel, match="--const size="):
        load(model_of("CropAndResize", crops((4, 6)), {"y": TensorProto.FLOAT}))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples(mode: str) -> None:
    operands = {"x": normal(0, 2, 3, 6, 5), "grid": np.tanh(normal(1, 2, 4, 3, 2))}
    assert_as_onnxruntime("GridSample", operands, None, (), 1e-4, mode=mode, padding_mode="border")


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_reflections_of_places_far_outside(mode: str, align: int) -> None:
    operands = {"x": normal(0, 2, 3, 6, 5), "grid": 5 * normal(1, 2, 4, 3, 2)}
    assert_as_onnxruntime(
        "GridSample", operands, None, (), 1e-4, "", mode=mode, padding_mode="reflection",
        align_corners=align,
    )  # fmt: skip


@pytest.mark.parametrize("group", [1, 2])
def test_convolutions(group: int) -> None:
    """onnxruntime has them on GPUs only: the same as Conv of turned operands."""
    x, w, b = normal(0, 2, 7, 5, 4), normal(1, 6, 3, 3, 4 // group), normal(2, 6)
    given: dict[str, Any] = {"pads": [1, 1, 1, 1], "strides": [2, 1], "group": group}
    conv = {"x": x.transpose(0, 3, 1, 2), "w": w.transpose(0, 3, 1, 2), "b": b}
    _, (want,) = both("Conv", conv, {"y": TensorProto.FLOAT}, domain="", **given)
    model = model_of("NhwcConv", {"x": x, "w": w, "b": b}, {"y": TensorProto.FLOAT}, **given)
    got = found(model, {"x": x, "w": w, "b": b})
    np.testing.assert_allclose(got, want.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-4)


def test_convolutions_with_an_activation() -> None:
    """Their weights are as of Conv."""
    x, w, z = normal(0, 1, 7, 5, 3), normal(1, 4, 3, 3, 3), normal(3, 1, 7, 5, 4)
    given: dict[str, Any] = {"pads": [1, 1, 1, 1], "activation": "Relu"}
    conv = {"x": x.transpose(0, 3, 1, 2), "w": w, "b": None, "z": z.transpose(0, 3, 1, 2)}
    _, (want,) = both("FusedConv", conv, {"y": TensorProto.FLOAT}, **given)
    operands = {"x": x, "w": w, "b": None, "z": z}
    got = found(
        model_of("NhwcFusedConv", operands, {"y": TensorProto.FLOAT}, **given),
        {"x": x, "w": w, "z": z},
    )
    np.testing.assert_allclose(got, want.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_maxima(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 120, (2, 7, 6, 3)).astype(dtype)
    kind = TensorProto.INT8 if dtype is np.int8 else TensorProto.UINT8
    assert_as_onnxruntime(
        "NhwcMaxPool", {"x": x}, {"y": kind}, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]
    )


@pytest.mark.parametrize("last", [0, 1])
def test_quantized_convolutions(last: int) -> None:
    rng = np.random.default_rng(0)
    shape = (2, 7, 5, 4) if last else (2, 4, 7, 5)
    operands = {
        "x": rng.integers(0, 256, shape).astype(np.uint8),
        "xs": np.float32(0.02), "xz": np.uint8(120),
        "w": rng.integers(-120, 120, (6, 4, 3, 3)).astype(np.int8),
        "ws": rng.uniform(0.01, 0.02, 6).astype(np.float32), "wz": np.zeros(6, np.int8),
        "ys": np.float32(0.1), "yz": np.uint8(128),
        "b": rng.integers(-900, 900, 6).astype(np.int32),
    }  # fmt: skip
    operands = {name: np.asarray(array) for name, array in operands.items()}
    constants = [name for name in operands if name != "x"]
    assert_as_onnxruntime(
        "QLinearConv", operands, {"y": TensorProto.UINT8}, constants, 1.0,
        channels_last=last, pads=[1, 1, 1, 1],
    )  # fmt: skip
