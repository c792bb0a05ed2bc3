"""Normalisations of com.microsoft beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from scipy.special import softmax

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, model_of, normal
from tests.graph.executor import run_network


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("skip", [(2, 5, 12), (1, 5, 12), (5, 12)])
def test_skip_layer_normalization(skip: tuple[int, ...], bias: bool) -> None:
    operands = {
        "x": normal(0, 2, 5, 12), "skip": normal(1, *skip), "gamma": normal(2, 12),
        "beta": normal(3, 12), "bias": normal(4, 12) if bias else None,
    }  # fmt: skip
    assert_as_onnxruntime("SkipLayerNormalization", operands, None, ["gamma", "beta"], epsilon=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias: bool) -> None:
    operands = {
        "x": normal(0, 1, 7, 8), "skip": normal(1, 1, 7, 8), "gamma": normal(2, 8),
        "bias": normal(4, 8) if bias else None,
    }  # fmt: skip
    assert_as_onnxruntime("SkipSimplifiedLayerNormalization", operands, epsilon=1e-6)


def test_simplified_layer_normalization() -> None:
    operands = {"x": normal(0, 3, 5, 8), "scale": normal(1, 8)}
    assert_as_onnxruntime("SimplifiedLayerNormalization", operands, domain="", epsilon=1e-5)


@pytest.mark.parametrize("given", ["float16", "float32"])
@pytest.mark.parametrize("scaled", ["float16", "float32"])
def test_the_scale_of_a_normalisation_decides_the_type(given: str, scaled: str) -> None:
    operands = {"x": normal(0, 3, 5, 8).astype(given), "scale": normal(1, 8).astype(scaled)}
    outputs = {"y": TensorProto.FLOAT16 if scaled == "float16" else TensorProto.FLOAT}
    assert_as_onnxruntime(
        "SimplifiedLayerNormalization", operands, outputs, tolerance=2e-3, domain="", epsilon=1e-5
    )


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("places", [False, True])
def test_embed_layer_normalization(segments: bool, mask: bool, places: bool) -> None:
    rng = np.random.default_rng(0)

    def words(size: int) -> np.ndarray:
        return rng.integers(0, size, (2, 5)).astype(np.int32)

    operands = {
        "ids": words(11), "segments": words(2) if segments else None,
        "words": normal(0, 11, 8), "positions": normal(1, 6, 8),
        "table": normal(2, 2, 8) if segments else None,
        "gamma": normal(3, 8), "beta": normal(4, 8),
        "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None,
        "places": words(6) if places else None,
    }  # fmt: skip
    outputs = {"y": TensorProto.FLOAT, "count": TensorProto.INT32, "sum": TensorProto.FLOAT}
    assert_as_onnxruntime("EmbedLayerNormalization", operands, outputs)


@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embed_layer_normalization(segments: bool) -> None:
    rng = np.random.default_rng(0)

    def table(*shape: int) -> np.ndarray:
        return rng.integers(0, 256, shape).astype(np.uint8)

    tables = {
        "words": table(11, 8), "positions": table(6, 8),
        "kinds": table(2, 8) if segments else None, "gamma": table(8), "beta": table(8),
    }  # fmt: skip
    names = [name for name, array in tables.items() if array is not None]
    operands = {
        "ids": rng.integers(0, 11, (2, 5)).astype(np.int32),
        "segments": rng.integers(0, 2, (2, 5)).astype(np.int32) if segments else None,
        **tables,
        "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
        **{f"{n}_scale": np.array(0.02, np.float32) if n in names else None for n in tables},
        **{f"{n}_zero": np.array(117, np.uint8) if n in names else None for n in tables},
    }
    outputs = {"y": TensorProto.FLOAT, "count": TensorProto.INT32}
    held = [
        n for n, a in operands.items() if a is not None and n not in ("ids", "segments", "mask")
    ]
    assert_as_onnxruntime("QEmbedLayerNormalization", operands, outputs, held)


def test_the_sum_is_an_output_and_statistics_are_refused() -> None:
    operands = {"x": normal(0, 1, 3, 4), "skip": normal(1, 1, 3, 4), "gamma": normal(2, 4)}
    outputs = {"y": TensorProto.FLOAT, "mean": TensorProto.FLOAT}
    with pytest.raises(UnsupportedModel, match="remove the consumers of statistics"):
        load(model_of("SkipLayerNormalization", operands, outputs))


def group_norm(x: Array, gamma: Array, beta: Array, groups: int, silu: bool) -> Array:
    """Of images whose channels are last, as onnx defines it."""
    n, *spatial, channels = x.shape
    split = x.reshape(n, -1, groups, channels // groups)
    centred = split - split.mean((1, 3), keepdims=True)
    normal_ = centred / np.sqrt((centred**2).mean((1, 3), keepdims=True) + 1e-5)
    found: Array = normal_.reshape(x.shape) * gamma + beta
    gate: Array = 1 / (1 + np.exp(-found)) if silu else np.ones_like(found)
    mixed: Array = found * gate
    return mixed


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("skip", [None, (2, 3, 5, 8), (2, 1, 1, 8), (2, 8)])
def test_group_norm(skip: tuple[int, ...] | None, silu: bool, last: bool) -> None:
    """onnxruntime has it on GPUs only."""
    x, gamma, beta = normal(0, 2, 3, 5, 8), normal(1, 8), normal(2, 8)
    total: Array = x

    def placed(image: Array) -> Array:
        return image.transpose(0, 3, 1, 2) if image.ndim == 4 and not last else image

    operands = {"x": placed(x), "gamma": gamma, "beta": beta}
    outputs = {"y": TensorProto.FLOAT}
    if skip is not None:
        added, bias = normal(3, *skip), normal(4, 8)
        total = x + bias + added.reshape(2, *(skip[1:3] if len(skip) == 4 else (1, 1)), 8)
        operands |= {"skip": placed(added), "bias": bias}
        outputs |= {"sum": TensorProto.FLOAT}
    model = model_of(
        "GroupNorm" if skip is None else "SkipGroupNorm", operands, outputs,
        groups=4, activation=int(silu), channels_last=int(last),
    )  # fmt: skip
    found = run_network(partition(optimize(load(model))), operands)
    wanted = [group_norm(total, gamma, beta, 4, silu), total]
    for got, want in zip(found, wanted, strict=False):
        np.testing.assert_allclose(got, placed(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [8, 24])
def test_gated_norms(columns: int) -> None:
    """onnxruntime has it on GPUs only."""
    x, scale, gate = normal(0, 2, 5, columns), normal(1, 8), normal(2, 2, 5, columns)
    operands = {"x": x, "scale": scale, "gate": gate}
    model = model_of("GatedRMSNorm", operands, {"y": TensorProto.FLOAT}, epsilon=1e-3)
    (got,) = run_network(partition(optimize(load(model))), operands)
    groups = x.reshape(2, 5, -1, 8)
    root = np.sqrt((groups**2).mean(-1, keepdims=True) + 1e-3)
    want = (groups / root * scale).reshape(x.shape) * gate / (1 + np.exp(-gate))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_usual_epsilon_of_gated_norms() -> None:
    x, scale, gate = 1e-3 * normal(0, 5, 8), normal(1, 8), normal(2, 5, 8)
    operands = {"x": x, "scale": scale, "gate": gate}
    model = model_of("GatedRMSNorm", operands, {"y": TensorProto.FLOAT})
    (got,) = run_network(partition(optimize(load(model))), operands)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    want = x / root * scale * gate / (1 + np.exp(-gate))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_softmax_behind_a_bias() -> None:
    """onnxruntime has it on GPUs only."""
    x, bias = normal(0, 2, 3, 4, 5), normal(1, 2, 1, 1, 5)
    model = model_of("BiasSoftmax", {"x": x, "b": bias}, {"y": TensorProto.FLOAT}, axis=3,
                     is_inner_broadcast=1)  # fmt: skip
    (got,) = run_network(partition(optimize(load(model))), {"x": x, "b": bias})
    np.testing.assert_allclose(got, softmax(x + bias, axis=3), rtol=1e-5, atol=1e-6)
