"""Attentions of com.microsoft beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, both, model_of, normal
from tests.graph.executor import compiled, run_network

BATCH, ROWS, HEADS, SIZE = 2, 5, 3, 4
WIDTH = HEADS * SIZE
FLOAT = TensorProto.FLOAT

MASKS = {
    "none": None,
    "lengths": np.array([3, 5], np.int32),
    "ends and starts": np.array([5, 4, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32),
    "queries and keys": np.tril(np.ones((BATCH, ROWS, ROWS), np.int32)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask: str, causal: int) -> None:
    operands = {
        "x": normal(0, BATCH, ROWS, 7), "w": normal(1, 7, 3 * WIDTH), "b": normal(2, 3 * WIDTH),
        "mask": MASKS[mask],
    }  # fmt: skip
    assert_as_onnxruntime(
        "Attention", operands, None, ["w", "b"], num_heads=HEADS, unidirectional=causal
    )


def test_attention_with_a_cache() -> None:
    operands = {
        "x": normal(0, BATCH, 1, 7), "w": normal(1, 7, 3 * WIDTH), "b": normal(2, 3 * WIDTH),
        "mask": None, "past": normal(3, 2, BATCH, HEADS, 6, SIZE),
    }  # fmt: skip
    outputs = {"y": FLOAT, "present": FLOAT}
    assert_as_onnxruntime("Attention", operands, outputs, ["w", "b"], num_heads=HEADS)


def test_attention_with_a_bias_of_scores() -> None:
    operands = {
        "x": normal(0, BATCH, ROWS, 7), "w": normal(1, 7, 3 * WIDTH), "b": normal(2, 3 * WIDTH),
        "mask": None, "past": None, "bias": normal(4, 1, HEADS, ROWS, ROWS),
    }  # fmt: skip
    assert_as_onnxruntime("Attention", operands, None, ["w", "b"], num_heads=HEADS)


def test_attention_with_values_of_another_width() -> None:
    operands = {
        "x": normal(0, BATCH, ROWS, 7), "w": normal(1, 7, 2 * WIDTH + 6),
        "b": normal(2, 2 * WIDTH + 6),
    }  # fmt: skip
    assert_as_onnxruntime(
        "Attention", operands, None, ["w", "b"], num_heads=HEADS,
        qkv_hidden_sizes=[WIDTH, WIDTH, 6], scale=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention(mask: str, bias: bool, causal: int) -> None:
    operands = {
        "q": normal(0, BATCH, ROWS, WIDTH), "k": normal(1, BATCH, ROWS, WIDTH),
        "v": normal(2, BATCH, ROWS, WIDTH), "bias": normal(3, 3 * WIDTH) if bias else None,
        "mask": MASKS[mask],
    }  # fmt: skip
    assert_as_onnxruntime("MultiHeadAttention", operands, num_heads=HEADS, unidirectional=causal)


def test_attention_of_other_rows_and_of_a_cache() -> None:
    operands = {
        "q": normal(0, BATCH, ROWS, WIDTH), "k": normal(1, BATCH, 7, WIDTH),
        "v": normal(2, BATCH, 7, WIDTH),
    }  # fmt: skip
    assert_as_onnxruntime("MultiHeadAttention", operands, num_heads=HEADS)
    operands = {
        "q": normal(0, BATCH, ROWS, WIDTH), "k": normal(1, BATCH, HEADS, 7, SIZE),
        "v": normal(2, BATCH, HEADS, 7, SIZE),
    }  # fmt: skip
    assert_as_onnxruntime("MultiHeadAttention", operands, num_heads=HEADS)


def test_no_look_ahead_at_keys_of_other_rows() -> None:
    """A single query comes behind all of them."""
    operands = {
        "q": normal(0, BATCH, 1, WIDTH), "k": normal(1, BATCH, 7, WIDTH),
        "v": normal(2, BATCH, 7, WIDTH),
    }  # fmt: skip
    assert_as_onnxruntime("MultiHeadAttention", operands, num_heads=HEADS, unidirectional=1)
    operands["q"] = normal(0, BATCH, ROWS, WIDTH)
    model = model_of(
        "MultiHeadAttention", operands, {"y": FLOAT}, num_heads=HEADS, unidirectional=1
    )
    with pytest.raises(UnsupportedModel, match="as many keys as queries"):
        load(model)


def test_caches_grow() -> None:
    operands = {
        "q": normal(0, BATCH, 1, WIDTH), "k": normal(1, BATCH, 1, WIDTH),
        "v": normal(2, BATCH, 1, WIDTH), "bias": None, "mask": None, "scores": None,
        "past_k": normal(3, BATCH, HEADS, 6, SIZE), "past_v": normal(4, BATCH, HEADS, 6, SIZE),
    }  # fmt: skip
    outputs = {"y": FLOAT, "present_k": FLOAT, "present_v": FLOAT}
    assert_as_onnxruntime("MultiHeadAttention", operands, outputs, num_heads=HEADS)


def group_operands(
    past: int, new: int, lengths: list[int], *, rotary: bool = False, packed: bool = False
) -> dict[str, Array | None]:
    """Operands for 4 heads of queries and 2 of keys, whose texts have *lengths* in all."""
    batch, size = len(lengths), 16
    q, k, v = (normal(n, batch, new, heads * size) for n, heads in enumerate((4, 2, 2)))
    angles = normal(7, 16, size // 2)
    return {
        "q": np.concatenate([q, k, v], 2) if packed else q,
        "k": None if packed else k,
        "v": None if packed else v,
        "past_k": normal(3, batch, 2, past, size),
        "past_v": normal(4, batch, 2, past, size),
        "last": np.array(lengths, np.int32) - 1,
        "total": np.array(past + new, np.int32),
        "cos": np.cos(angles) if rotary else None,
        "sin": np.sin(angles) if rotary else None,
    }


def assert_group(operands: dict[str, Array | None], **attributes: Any) -> None:
    outputs = {"y": FLOAT, "present_k": FLOAT, "present_v": FLOAT}
    assert_as_onnxruntime(
        "GroupQueryAttention",
        operands,
        outputs,
        ["total"],
        num_heads=4,
        kv_num_heads=2,
        **attributes,
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("interleaved", [None, 0, 1])
@pytest.mark.parametrize("past", [0, 6])
def test_group_query_attention(past: int, interleaved: int | None, packed: bool) -> None:
    new = 1 if past else 5
    attributes = {} if interleaved is None else {"do_rotary": 1, "rotary_interleaved": interleaved}
    operands = group_operands(
        past, new, [past + new] * 2, rotary=interleaved is not None, packed=packed
    )
    assert_group(operands, **attributes)


@pytest.mark.parametrize(
    "attributes",
    [{"local_window_size": 3}, {"softcap": 5.0}, {"scale": 0.7}, {"scale": 0.0}],
    ids=["window", "cap", "scale", "usual scale"],
)
def test_scores_of_groups(attributes: dict[str, Any]) -> None:
    assert_group(group_operands(0, 5, [5, 5]), **attributes)
    assert_group(group_operands(6, 1, [7]), **attributes)


@pytest.mark.parametrize("past", [0, 6])
def test_sinks_of_groups(past: int) -> None:
    operands = group_operands(past, 1 if past else 5, [7 if past else 5] * 2)
    assert_group(operands, smooth_softmax=1)
    none = dict.fromkeys(("cos", "sin", "places", "bias"))
    assert_group({**operands, **none, "sink": normal(8, 4)})


@pytest.mark.parametrize("past", [0, 6])
def test_groups_with_normalised_rows(past: int) -> None:
    """onnxruntime normalises them only on GPUs, so it gets operands that are normalised before."""
    operands = group_operands(past, 1 if past else 5, [7 if past else 5] * 2, rotary=True)
    attributes: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    outputs = {"y": FLOAT, "present_k": FLOAT, "present_v": FLOAT}
    weights = {"q_norm": normal(8, 16), "k_norm": normal(9, 16)}
    before = dict(operands)
    for name, weight in zip(("q", "k"), weights.values(), strict=True):
        held = operands[name]
        assert held is not None
        rows = held.reshape(*held.shape[:2], -1, 16)
        root = np.sqrt((rows * rows).mean(-1, keepdims=True) + np.float32(1e-3))
        before[name] = np.asarray(rows / root * weight).reshape(held.shape)
    _, expected = both("GroupQueryAttention", before, outputs, ["total"], **attributes)
    none = dict.fromkeys(("places", "bias", "sink", "k_scale", "v_scale"))
    given = {**operands, **none, **weights}
    model = model_of(
        "GroupQueryAttention", given, outputs, ["total"], qk_norm_epsilon=1e-3, **attributes
    )
    feeds = {n: x for n, x in given.items() if x is not None and n != "total"}
    for got, want in zip(run_network(compiled(model), feeds), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_texts_of_different_lengths() -> None:
    """Caches are compared as far as they are filled."""
    lengths = [4, 7]
    operands = group_operands(6, 1, lengths, rotary=True)
    outputs = {"y": FLOAT, "present_k": FLOAT, "present_v": FLOAT}
    attributes: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    (got, *caches), (want, *wanted) = both(
        "GroupQueryAttention", operands, outputs, ["total"], **attributes
    )
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    for ours, theirs in zip(caches, wanted, strict=True):
        for text, length in enumerate(lengths):
            np.testing.assert_allclose(
                ours[text, :, :length], theirs[text, :, :length], rtol=2e-5, atol=2e-5
            )


def test_only_a_run_may_know_that_a_cache_has_room() -> None:
    """New rows follow those that count, wherever the cache ends."""
    operands = group_operands(8, 1, [5], rotary=True)
    operands["total"] = np.array(5, np.int32)
    outputs = {"y": FLOAT, "present_k": FLOAT, "present_v": FLOAT}
    (got, *caches), (want, *wanted) = both(
        "GroupQueryAttention", operands, outputs, num_heads=4, kv_num_heads=2, do_rotary=1
    )
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    for ours, theirs in zip(caches, wanted, strict=True):
        np.testing.assert_allclose(ours[:, :, :5], theirs[:, :, :5], rtol=2e-5, atol=2e-5)


def test_a_cache_with_room_is_refused() -> None:
    operands = group_operands(6, 1, [5])
    operands["total"] = np.array(6, np.int32)
    model = model_of(
        "GroupQueryAttention", operands, {"y": FLOAT}, ["total"], num_heads=4, kv_num_heads=2
    )
    with pytest.raises(UnsupportedModel, match="past rows only"):
        load(model)


@pytest.mark.parametrize("masked", [False, True])
def test_qattention(masked: bool) -> None:
    rng = np.random.default_rng(0)
    operands = {
        "x": rng.integers(0, 256, (BATCH, ROWS, 7)).astype(np.uint8),
        "w": rng.integers(-128, 128, (7, 3 * WIDTH)).astype(np.int8),
        "b": normal(2, 3 * WIDTH), "x_scale": np.array(0.01, np.float32),
        "w_scale": np.array(0.02, np.float32), "mask": MASKS["lengths"] if masked else None,
        "x_zero": np.array(121, np.uint8), "w_zero": np.array(0, np.int8),
    }  # fmt: skip
    held = [n for n, a in operands.items() if a is not None and n not in ("x", "mask")]
    assert_as_onnxruntime("QAttention", operands, None, held, 1e-4, num_heads=HEADS)


@pytest.mark.parametrize("name", ["do_rotary", "past_present_share_buffer"])
def test_parts_of_qattention_that_are_refused(name: str) -> None:
    operands = {
        "x": np.zeros((BATCH, ROWS, 7), np.uint8), "w": np.zeros((7, 3 * WIDTH), np.int8),
        "b": normal(2, 3 * WIDTH), "x_scale": np.array(0.01, np.float32),
        "w_scale": np.array(0.02, np.float32),
    }  # fmt: skip
    more: dict[str, Any] = {name: 1}
    model = model_of("QAttention", operands, {"y": FLOAT}, num_heads=HEADS, **more)
    with pytest.raises(UnsupportedModel, match=f"{name}=1"):
        load(model)


def test_a_buffer_of_keys_with_room_is_refused() -> None:
    operands = {
        "q": normal(0, BATCH, 1, WIDTH), "k": normal(1, BATCH, 1, WIDTH),
        "v": normal(2, BATCH, 1, WIDTH), "bias": None, "mask": None, "scores": None,
        "past_k": normal(3, BATCH, HEADS, 6, SIZE), "past_v": normal(4, BATCH, HEADS, 6, SIZE),
        "past": np.array([3], np.int32),
    }  # fmt: skip
    model = model_of("MultiHeadAttention", operands, {"y": FLOAT}, num_heads=HEADS)
    with pytest.raises(UnsupportedModel, match="past_sequence_length"):
        load(model)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, 5, 16), (2, 2, 5, 8)])
@pytest.mark.parametrize("places", [[3], [[0, 2, 4, 1, 3], [7, 8, 9, 10, 11]]])
def test_rotary_embedding(shape: tuple[int, ...], places: list[Any], interleaved: int) -> None:
    angles = normal(1, 16, 4)
    operands = {
        "x": normal(0, *shape), "places": np.array(places), "cos": np.cos(angles),
        "sin": np.sin(angles),
    }  # fmt: skip
    assert_as_onnxruntime("RotaryEmbedding", operands, interleaved=interleaved)


def test_part_of_each_row_is_rotated() -> None:
    angles = normal(1, 16, 2)
    operands = {
        "x": normal(0, 2, 5, 16), "places": np.array([0]), "cos": np.cos(angles),
        "sin": np.sin(angles),
    }  # fmt: skip
    assert_as_onnxruntime("RotaryEmbedding", operands, num_heads=2, rotary_embedding_dim=4)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, 5, 16), (2, 2, 5, 12)])
def test_rotary_embedding_in_time_height_and_width(
    shape: tuple[int, ...], interleaved: int, layout: int
) -> None:
    """Of longer rows, the rest is kept."""
    angles = normal(1, 16, 4)
    operands = {
        "x": normal(0, *shape), "places": np.random.default_rng(2).integers(0, 16, (3, 2, 5)),
        "cos": np.cos(angles), "sin": np.sin(angles),
    }  # fmt: skip
    assert_as_onnxruntime(
        "MRotaryEmbedding", operands, interleaved=interleaved, mrope_section=[2, 1, 1],
        mrope_layout=layout, scale=0.5, num_heads=2, rotary_embedding_dim=8,
    )  # fmt: skip


def test_scale_of_rotations_is_refused() -> None:
    """onnxruntime reads it of rotations in time, height and width only."""
    operands = {
        "x": normal(0, 2, 5, 16), "places": np.zeros((2, 5), np.int64),
        "cos": normal(1, 16, 4), "sin": normal(2, 16, 4),
    }  # fmt: skip
    with pytest.raises(UnsupportedModel, match="multiply the tables by it"):
        load(model_of("RotaryEmbedding", operands, {"y": FLOAT}, scale=0.5))


def test_sections_of_rotations_fill_the_tables() -> None:
    operands = {
        "x": normal(0, 2, 5, 16), "places": np.zeros((3, 2, 5), np.int64),
        "cos": normal(1, 16, 4), "sin": normal(2, 16, 4),
    }  # fmt: skip
    model = model_of("MRotaryEmbedding", operands, {"y": FLOAT}, mrope_section=[2, 1, 2])
    with pytest.raises(UnsupportedModel, match="three numbers whose sum is 4"):
        load(model)


@pytest.mark.parametrize("both", [0, 1])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (40, 60), (1, 1)])
def test_relative_position_bias(queries: int, keys: int, both: int) -> None:
    """onnxruntime has it on GPUs only."""
    rows, heads, farthest = 16, 3, 20
    table = normal(0, rows, heads)
    operands = {"table": table, "queries": np.array([queries]), "keys": np.array([keys])}
    model = model_of(
        "RelativePositionBias", operands, {"y": TensorProto.FLOAT}, ["queries", "keys"],
        max_distance=farthest, is_bidirectional=both,
    )  # fmt: skip
    (got,) = run_network(partition(optimize(load(model))), {"table": table})
    ahead = np.arange(keys) - np.arange(queries)[:, None]
    half, size = (rows // 2, np.abs(ahead)) if both else (rows, np.maximum(-ahead, 0))
    near = half // 2
    part = np.log(np.maximum(size, 1) / near) / np.log(farthest / near)
    far = np.minimum(near + np.trunc(part * (half - near)), half - 1)
    row = np.where(size < near, size, far).astype(int) + both * half * (ahead > 0)
    np.testing.assert_array_equal(got[0], table[row].transpose(2, 0, 1))


def test_rotations_of_more_elements_than_a_row_has_are_refused() -> None:
    operands = {**group_operands(0, 5, [5, 5]), "cos": normal(7, 16, 9), "sin": normal(8, 16, 9)}
    model = model_of(
        "GroupQueryAttention", operands, {"y": FLOAT}, ["total"],
        num_heads=4, kv_num_heads=2, do_rotary=1,
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match=r"(?s)rotation of 18 elements.*rows have 16"):
        load(model)
