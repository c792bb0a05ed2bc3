"""Random numbers and dropout: their distributions and seeds, and what no draw decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph.ops.random import key_of
from tests.frontend.models import graph_model, node, operator_model
from tests.frontend.test_loops import looping
from tests.graph.executor import Array, compiled, run_network


def squares(counter: int, key: int) -> int:
    """The generator as its paper gives it, in Python's integers."""
    whole = (1 << 64) - 1

    def turned(x: int) -> int:
        return (x >> 32 | x << 32) & whole

    y = counter * key & whole
    z = y + key & whole
    x = turned(y * y + y & whole)
    x = turned(x * x + z & whole)
    x = turned(x * x + y & whole)
    return (x * x + z & whole) >> 32


def draws(op_type: str, shape: tuple[int, ...], **attributes: Any) -> Array:
    """The result of a generator for an operand of *shape*, beside an input that is read."""
    nodes = [node(op_type, ["x"], ["r"], **attributes), node("Neg", ["x"], ["y"])]
    network = compiled(graph_model(nodes, {"x": shape}, ["r", "y"], opset=22))
    return run_network(network, {"x": np.zeros(shape, np.float32)})[0]


def test_draws_are_those_of_the_paper() -> None:
    got = draws("RandomUniformLike", (3, 5), seed=7.0)
    wanted = [(squares(n, key_of(7, 0)) >> 8) / (1 << 24) for n in range(15)]
    np.testing.assert_array_equal(got.reshape(-1), np.asarray(wanted, np.float32))


def test_uniform_numbers_are_between_their_bounds() -> None:
    got = draws("RandomUniformLike", (101, 97), low=-2.0, high=5.0)
    assert got.min() >= -2 and got.max() < 5
    assert abs(got.mean() - 1.5) < 0.1 and abs(got.std() - 7 / np.sqrt(12)) < 0.05
    assert abs(np.corrcoef(got[:-1].reshape(-1), got[1:].reshape(-1))[0, 1]) < 0.05


def test_normal_numbers_have_their_mean_and_scale() -> None:
    got = draws("RandomNormalLike", (101, 97), mean=3.0, scale=2.0)
    assert np.isfinite(got).all()
    assert abs(got.mean() - 3) < 0.1 and abs(got.std() - 2) < 0.06
    assert abs((np.abs(got - 3) < 2).mean() - 0.6827) < 0.02


def test_draws_follow_the_seed() -> None:
    one, same, other = (draws("RandomUniformLike", (11,), seed=s) for s in (1.0, 1.0, 2.0))
    np.testing.assert_array_equal(one, same)
    assert not np.isin(one, other).any()


def test_nodes_without_a_seed_draw_differently() -> None:
    nodes = [node("RandomUniformLike", ["x"], [name]) for name in ("a", "b")]
    first, second = run_network(
        compiled(graph_model(nodes, {"x": (7,)}, ["a", "b"], opset=22)),
        {"x": np.zeros(7, np.float32)},
    )
    assert not np.isin(first, second).any()


@pytest.mark.parametrize("op_type", ["RandomUniform", "RandomNormal"])
def test_a_shape_may_be_given(op_type: str) -> None:
    nodes = [
        node(op_type, [], ["r"], shape=[3, 4], dtype=TensorProto.DOUBLE),
        node("Neg", ["x"], ["y"]),
    ]
    found, _ = run_network(
        compiled(graph_model(nodes, {"x": (2,)}, ["r", "y"], types={"r": TensorProto.DOUBLE})),
        {"x": np.zeros(2, np.float32)},
    )
    assert found.shape == (3, 4) and found.dtype == np.float64 and len(np.unique(found)) == 12


def test_bernoulli_is_true_as_often_as_likely(rng: np.random.Generator) -> None:
    model = operator_model(
        "Bernoulli", [(5, 1009)], opset=22, types={"y0": TensorProto.BOOL}, dtype=9
    )
    likely = np.repeat(np.asarray([[0], [0.1], [0.5], [0.9], [1]], np.float32), 1009, axis=1)
    (got,) = run_network(compiled(model), {"x0": likely})
    assert got.dtype == bool and not got[0].any() and got[4].all()
    np.testing.assert_allclose(got.mean(1), likely[:, 0], atol=0.05)


def test_multinomial_draws_classes_by_their_weights() -> None:
    model = operator_model(
        "Multinomial", [(3, 4)], opset=22, types={"y0": TensorProto.INT32}, sample_size=997
    )
    logits = np.log(np.asarray([[1, 1, 1, 1], [0, 3, 1, 0], [0, 0, 0, 9]], np.float32) + 1e-30)
    (got,) = run_network(compiled(model), {"x0": logits})
    assert got.shape == (3, 997) and got.dtype == np.int32
    shares = np.stack([(got == n).mean(1) for n in range(4)], 1)
    weights = np.exp(logits)
    np.testing.assert_allclose(shares, weights / weights.sum(1, keepdims=True), atol=0.06)


def dropped(ratio: float | None, training: bool | None, shape: tuple[int, ...]) -> list[Array]:
    """A dropout of ones whose ratio is an input; *training* too, unless it is None."""
    names = ["x", "ratio", "training"]
    shapes: dict[str, tuple[int, ...]] = {"x": shape, "ratio": ()}
    feeds: dict[str, Array] = {"x": np.ones(shape, np.float32), "ratio": np.float32(ratio)}  # type: ignore[dict-item]
    held: dict[str, Array] = {}
    if training is None:
        held["training"] = np.asarray(True)
    else:
        shapes["training"], feeds["training"] = (), np.asarray(training)
    one = node("Dropout", names, ["y", "mask"], seed=3)
    types = {"training": TensorProto.BOOL, "mask": TensorProto.BOOL}
    model = graph_model([one], shapes, ["y", "mask"], held, types=types)
    return run_network(compiled(model), feeds)


@pytest.mark.parametrize("training", [None, True])
def test_dropout_keeps_the_mean(training: bool | None) -> None:
    got, mask = dropped(0.25, training, (97, 101))
    np.testing.assert_array_equal(got, np.where(mask, np.float32(4 / 3), 0))
    assert abs(mask.mean() - 0.75) < 0.02


def test_nothing_is_dropped_outside_training_or_with_ratio_0() -> None:
    for got, mask in (dropped(0.9, False, (3, 5)), dropped(0.0, None, (3, 5))):
        np.testing.assert_array_equal(got, np.ones((3, 5)))
        assert mask.all() and mask.dtype == bool


def test_everything_is_dropped_with_ratio_1() -> None:
    got, mask = dropped(1.0, None, (3, 5))
    assert not got.any() and not mask.any()


@pytest.mark.parametrize(("opset", "dtype"), [(7, np.float32), (10, bool), (13, bool)])
def test_masks_of_inference_keep_all(opset: int, dtype: type) -> None:
    types = {"y1": TensorProto.BOOL if dtype is bool else TensorProto.FLOAT}
    network = compiled(operator_model("Dropout", [(2, 3)], outputs=2, opset=opset, types=types))
    data = np.ones((2, 3), np.float32)
    got, mask = run_network(network, {"x0": data})
    np.testing.assert_array_equal(got, data)
    assert mask.dtype == dtype and (mask == 1).all()


def test_integers_are_not_drawn() -> None:
    nodes = [node("RandomUniformLike", ["x"], ["y"], dtype=7)]
    with pytest.raises(UnsupportedModel, match=r"dtype=int64 +\[3\]\s+draw floats"):
        load(graph_model(nodes, {"x": (3,)}, ["y"], types={"y": TensorProto.INT64}))


def rows_of_loop(trips: int, drawn: str, kind: str = "Loop") -> Array:
    """What each iteration of a loop draws for constants; few iterations are unrolled."""
    rng = np.random.default_rng(7)
    is_loop = kind == "Loop"
    body = f"""step ({"int64 i, bool c" if is_loop else "float[3] r"})
        => ({"bool c2, " if is_loop else ""}float[61] row) {{
        {"c2 = Identity(c)" if is_loop else ""}
        made = {drawn}
        row = Add(made, zero)
    }}"""
    held = {
        "data": rng.random(61, np.float32), "ratio": np.float32(0.5), "training": np.asarray(True),
        "trips": np.int64(trips),
    }  # fmt: skip
    operands = ["trips", ""] if is_loop else ["x"]
    given: dict[str, Any] = {} if is_loop else {"num_scan_inputs": 1}
    model = looping(
        body, {"x": (trips, 3), "zero": (61,)}, operands, ["y"], held, kind=kind, **given
    )
    network = compiled(model)
    assert len(network.controls) == (trips > 4)
    feeds = {"x": rng.random((trips, 3), np.float32), "zero": np.zeros(61, np.float32)}
    return run_network(network, feeds)[0]


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_iterations_draw_from_counters_of_their_own(kind: str) -> None:
    """Whether the loop is unrolled or not."""
    found = rows_of_loop(9, "RandomUniformLike<seed = 3.0>(data)", kind)
    starts = [(i + 1) * 0x9E3779B97F4A7C15 % (1 << 64) for i in range(9)]
    wanted = [
        [(squares(start + n, key_of(3, 0)) >> 8) / (1 << 24) for n in range(61)] for start in starts
    ]
    np.testing.assert_array_equal(found, np.asarray(wanted, np.float32))
    few = rows_of_loop(3, "RandomUniformLike<seed = 3.0>(data)", kind)
    np.testing.assert_array_equal(few, found[:3])


@pytest.mark.parametrize("trips", [3, 9])
@pytest.mark.parametrize(
    "drawn",
    ["RandomNormalLike(data)", "Bernoulli(data)", "Dropout<seed = 5>(data, ratio, training)"],
)
def test_no_two_iterations_draw_the_same(drawn: str, trips: int) -> None:
    found = rows_of_loop(trips, drawn)
    assert len(np.unique(found, axis=0)) == trips


@pytest.mark.parametrize(("outer", "inner"), [(3, 2), (3, 9), (9, 3), (9, 9)])
def test_loops_in_loops_draw_anew(outer: int, inner: int) -> None:
    rows = parser.parse_graph("""rows (int64 j, bool d) => (bool d2, float[4] row) {
        d2 = Identity(d)
        row = RandomUniformLike(z)
    }""")
    nodes = [
        node("Identity", ["c"], ["c2"]), node("Loop", ["inner", ""], ["all"], body=rows)
    ]  # fmt: skip
    body = helper.make_graph(
        nodes, "step",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []),
         helper.make_tensor_value_info("all", TensorProto.FLOAT, [inner, 4])],
    )  # fmt: skip
    model = graph_model(
        [node("Loop", ["outer", ""], ["y"], body=body)], {"z": (4,)}, ["y"],
        {"outer": np.asarray(outer), "inner": np.asarray(inner)},
    )  # fmt: skip
    (found,) = run_network(compiled(model), {"z": np.random.default_rng(1).random(4, np.float32)})
    assert found.shape == (outer, inner, 4) and len(np.unique(found)) == found.size


def test_elements_of_a_sequence_draw_differently(rng: np.random.Generator) -> None:
    body = parser.parse_graph(
        "each (float[1, 4] a) => (float[1, 4] b) { b = RandomUniformLike(a) }"
    )
    nodes = [
        node("SplitToSequence", ["x"], ["parts"]),
        node("SequenceMap", ["parts"], ["drawn"], body=body),
        node("ConcatFromSequence", ["drawn"], ["y"], axis=0),
    ]
    model = graph_model(nodes, {"x": (5, 4)}, ["y"])
    (found,) = run_network(compiled(model), {"x": rng.random((5, 4), np.float32)})
    assert len(np.unique(found)) == 20
