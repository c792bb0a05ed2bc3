"""Attention and rotary embeddings as operators, in their forms, against onnx's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, compiled, random_feeds, run_network

Shapes = Mapping[str, tuple[int, ...]]


def checked(model: ModelProto) -> list[str]:
    """The names of the calls, once the outputs equal those of onnx's reference."""
    network = compiled(model)
    feeds = random_feeds(network, np.random.default_rng(3))
    expected = ReferenceEvaluator(model).run(None, feeds)
    for got, want in zip(run_network(network, feeds), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * float(np.abs(want).max()))
    return [call.name for call in network.calls]


def attention(
    shapes: Shapes, constants: Mapping[str, Array] | None = None, outputs: int = 1, **given: Any
) -> ModelProto:
    names = ["q", "k", "v", "mask", "past_k", "past_v"]
    held = dict(constants or {})
    operands = [name if name in shapes or name in held else "" for name in names]
    results = ["y", "present_k", "present_v", "scores"][:outputs]
    one = node("Attention", operands, results, **given)
    return graph_model([one], shapes, results, held, 23)


FOUR = {"q": (2, 4, 5, 8), "k": (2, 4, 7, 8), "v": (2, 4, 7, 6)}
CACHE = {"past_k": (2, 4, 3, 8), "past_v": (2, 4, 3, 6)}


@pytest.mark.parametrize("given", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"is_causal": 1}])
def test_heads_are_an_axis(given: dict[str, Any]) -> None:
    names = checked(attention(FOUR, **given))
    assert any("attention" in name for name in names) or "softcap" in given


def test_a_scale_of_zero_is_one_that_is_given() -> None:
    checked(attention(FOUR, scale=0.0))


def test_heads_are_within_rows_and_of_keys_there_are_fewer() -> None:
    shapes = {"q": (2, 5, 24), "k": (2, 7, 12), "v": (2, 7, 10)}
    names = checked(attention(shapes, q_num_heads=4, kv_num_heads=2))
    assert len(names) == 1 and "attention" in names[0]


@pytest.mark.parametrize("causal", [0, 1])
def test_caches_come_first_and_are_results(causal: int) -> None:
    checked(attention({**FOUR, **CACHE}, outputs=3, is_causal=causal))


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7), (4, 5, 7)])
def test_a_mask_may_be_known_at_run_time(shape: tuple[int, ...]) -> None:
    checked(attention({**FOUR, "mask": shape}, is_causal=1))


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_scores_of_each_stage_are_results(stage: int) -> None:
    shapes = {**FOUR, "mask": (5, 7)}
    cap = 1.5 if stage else 0.0  # onnx's reference gives capped scores instead of those of stage 0
    checked(attention(shapes, outputs=4, qk_matmul_output_mode=stage, softcap=cap))


@pytest.mark.parametrize("causal", [0, 1])
def test_keys_beyond_a_texts_length_are_masked(causal: int) -> None:
    one = node("Attention", ["q", "k", "v", "", "", "", "count"], ["y"], is_causal=causal)
    checked(graph_model([one], FOUR, ["y"], {"count": np.array([5, 7])}, 24))


def test_scores_are_normalised_in_another_type() -> None:
    checked(attention(FOUR, softmax_precision=int(TensorProto.DOUBLE)))


def test_rows_that_a_constant_mask_leaves_nothing_of_are_zeros() -> None:
    mask = np.random.default_rng(1).random((5, 7)) < 0.5
    mask[2] = False
    checked(attention(FOUR, {"mask": mask}))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (2, 5, 24)])
@pytest.mark.parametrize("by_place", [False, True])
def test_rotary_embeddings(
    interleaved: int, turned: int, shape: tuple[int, ...], by_place: bool
) -> None:
    rng = np.random.default_rng(2)
    half = (turned or 8) // 2
    angles = rng.standard_normal((9, half) if by_place else (2, 5, half))
    constants = {
        "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)
    }  # fmt: skip
    inputs: dict[str, tuple[int, ...]] = {"x": shape}
    operands = ["x", "cos", "sin"]
    if by_place:
        inputs["at"], operands = (2, 5), [*operands, "at"]
    given: dict[str, Any] = {"num_heads": 3} if len(shape) == 3 else {}
    one = node("RotaryEmbedding", operands, ["y"], interleaved=interleaved,
               rotary_embedding_dim=turned, **given)  # fmt: skip
    checked(graph_model([one], inputs, ["y"], constants, 23, {"at": TensorProto.INT64}))


@pytest.mark.parametrize("causal", [0, 1])
def test_products_in_half_precision_are_scaled_before_they_overflow(causal: int) -> None:
    shape = (1, 1, 4, 64)
    one = node("Attention", ["q", "k", "v"], ["y"], is_causal=causal)
    kinds = dict.fromkeys("qkvy", TensorProto.FLOAT16)
    network = compiled(graph_model([one], dict.fromkeys("qkv", shape), ["y"], None, 23, kinds))
    v = np.random.default_rng(3).standard_normal(shape).astype(np.float16)
    same = np.full(shape, 40, np.float16)
    [got] = run_network(network, {"q": same, "k": same, "v": v})
    wide = v.astype(np.float64)
    want = wide.mean(2, keepdims=True)
    if causal:
        want = wide.cumsum(2) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose(got, np.broadcast_to(want, shape), rtol=0, atol=4e-3)


def test_a_stage_of_scores_that_there_is_not_is_refused() -> None:
    shapes = {"q": (1, 2, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}
    with pytest.raises(UnsupportedModel, match="qk_matmul_output_mode=7"):
        load(attention(shapes, qk_matmul_output_mode=7))
