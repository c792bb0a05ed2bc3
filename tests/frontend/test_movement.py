"""Movements at the edges of what ONNX allows: clamped bounds, nothing to join, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import Array, assert_same_as_onnxruntime, compiled, run_network


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


FAR = 1 << 40


@pytest.mark.parametrize("start", [-FAR, -6, -5, -1, 0, 2, 4, 5, FAR])
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_are_clamped_as_onnxruntime_does(
    start: int, step: int, rng: np.random.Generator
) -> None:
    ends = {f"end{n}": ints(e) for n, e in enumerate((-FAR, -6, -5, -1, 0, 2, 4, 5, FAR))}
    constants = {"start": ints(start), "axis": ints(0), "step": ints(step), **ends}
    nodes = [node("Slice", ["x", "start", end, "axis", "step"], [f"to_{end}"]) for end in ends]
    model = graph_model(nodes, {"x": (5, 3)}, [f"to_{end}" for end in ends], constants)
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("known", [None, 0, 2, -3])
def test_only_a_run_may_know_between_which_places(
    known: int | None, rng: np.random.Generator
) -> None:
    """A slice of one axis has at most as many elements as there are."""
    one = node("Slice", ["x", "start", "end", "axis"], ["y"])
    held = {"axis": ints(1)} | ({} if known is None else {"start": ints(known)})
    inputs = {"x": (2, 5), "end": (1,)} | ({"start": (1,)} if known is None else {})
    types = {"start": TensorProto.INT64, "end": TensorProto.INT64}
    network = compiled(graph_model([one], inputs, ["y"], held, types=types))
    x = rng.standard_normal((2, 5)).astype(np.float32)
    places = (-FAR, -6, -5, -1, 0, 2, 4, 5, FAR)
    for start in places if known is None else (known,):
        for end in places:
            feeds = {"x": x, "start": ints(start), "end": ints(end)}
            (y,) = run_network(network, {name: feeds[name] for name in inputs})
            np.testing.assert_array_equal(y, x[:, start:end])


@pytest.mark.parametrize("empty", [(0, 2), (3, 0)])
def test_what_has_no_elements_is_not_joined(
    empty: tuple[int, int], rng: np.random.Generator
) -> None:
    axis = empty.index(0)
    nodes = [node("Neg", ["x"], ["n"]), node("Concat", ["none", "n"], ["y"], axis=axis)]
    constants: dict[str, Array] = {"none": np.zeros(empty, np.float32)}
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (3, 2)}, ["y"], constants), rng)


@pytest.mark.parametrize("part", [(3, 1), (3, 16)])
@pytest.mark.parametrize("width", [16, 17, 32])
def test_parts_of_any_width_are_joined(
    part: tuple[int, int], width: int, rng: np.random.Generator
) -> None:
    constants: dict[str, Array] = {"c": rng.standard_normal(part).astype(np.float32)}
    nodes = [
        node("Concat", ["x", "c"], ["joined"], axis=1),
        node("Mul", ["joined", "s"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (3, width), "s": (3, 1)}, ["y"], constants)
    assert_same_as_onnxruntime(model, rng)


PADS = [(-1, 2), (1, -3), (0, -3), (-3, 0), (-2, -1), (-3, 3), (2, -2), (-2, 9), (9, -1)]


@pytest.mark.parametrize("mode", ["constant", "edge"])
@pytest.mark.parametrize("pads", PADS)
def test_negative_pads_crop_before_others_are_added(
    pads: tuple[int, int], mode: str, rng: np.random.Generator
) -> None:
    amounts = ints(0, pads[0], 1, pads[1])
    assert_same_as_onnxruntime(operator_model("Pad", [(2, 4)], [amounts], mode=mode), rng)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64"])
def test_pads_of_large_integers_are_exact(kind: str) -> None:
    most = np.iinfo(kind).max
    held: dict[str, Array] = {"pads": ints(1, 2), "value": np.asarray(most - 1, kind)}
    types = dict.fromkeys("xy", getattr(TensorProto, kind.upper()))
    model = graph_model([node("Pad", ["x", "pads", "value"], ["y"])], {"x": (2,)}, ["y"], held,
                        types=types)  # fmt: skip
    [got] = run_network(compiled(model), {"x": np.asarray([3, most], kind)})
    assert [int(n) for n in got] == [most - 1, 3, most, most - 1, most - 1]


@pytest.mark.parametrize("pads", [(-4, 2), (-5, 3), (-5, 6), (3, -5), (2, -4), (-1, -3), (5, -6)])
def test_no_edge_is_repeated_of_nothing(pads: tuple[int, ...], rng: np.random.Generator) -> None:
    """onnxruntime refuses them too; zeros can be put around nothing."""
    begin, end = pads
    amounts, shape = ints(0, begin, 1, end), (2, 4)
    model = _declared(operator_model("Pad", [shape], [amounts], mode="edge"))
    with pytest.raises(UnsupportedModel, match="crop at most 3 of 4"):
        load(model)
    if 4 + begin + end > 0:
        assert_same_as_onnxruntime(operator_model("Pad", [shape], [amounts]), rng)


REFUSED: dict[str, tuple[str, list[Array], dict[str, Any], str]] = {
    "reshape_copies_nothing": ("Reshape", [ints(2, 5, 3, 0)], {}, "copies one of 3"),
    "flatten_beyond": ("Flatten", [], {"axis": 4}, "axis=4"),
    "transpose_twice": ("Transpose", [], {"perm": [0, 0, 1]}, "each of 3 axes once"),
    "transpose_more": ("Transpose", [], {"perm": [0, 1, 2, 3]}, "each of 3 axes once"),
    "unsqueeze_twice": ("Unsqueeze", [ints(1, 1)], {}, "each axis once"),
    "squeeze_twice": ("Squeeze", [ints(0, -3)], {}, "each axis once"),
    "slice_twice": ("Slice", [ints(0, 0), ints(1, 1), ints(1, -2)], {}, "each axis once"),
    "slice_stands": ("Slice", [ints(0), ints(1), ints(1), ints(0)], {}, "no step of 0"),
    "slice_uneven": ("Slice", [ints(0, 0), ints(1)], {}, "the same number of each"),
    "gather_beyond": ("Gather", [ints(0, 2)], {}, "(?s)index 2.*the axis has 2 elements"),
    "reflect_all": ("Pad", [ints(0, 5, 0, 0, 0, 0)], {"mode": "reflect"}, "at most 4"),
    "reflect_cut": ("Pad", [ints(0, -3, 0, 0, 2, 0)], {"mode": "reflect"}, "at most 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused_in_plain_words(case: str) -> None:
    op_type, constants, attributes, said = REFUSED[case]
    model = _declared(operator_model(op_type, [(2, 5, 3)], constants, **attributes))
    with pytest.raises(UnsupportedModel, match=said):
        load(model)


@pytest.mark.parametrize("sizes", [(2, 9), (2, 1), (5,)])
def test_a_split_has_to_share_out_everything(sizes: tuple[int, ...]) -> None:
    model = _declared(operator_model("Split", [(5, 3)], [ints(*sizes)], outputs=2))
    with pytest.raises(UnsupportedModel, match="give 2 sizes that sum up to 5"):
        load(model)


@pytest.mark.parametrize("op_type", ["MatMul", "Concat", "Add", "Conv"])
def test_operands_of_different_types_are_refused(op_type: str) -> None:
    shape = (1, 1, 2, 2) if op_type == "Conv" else (2, 2)
    attributes: dict[str, Any] = {"axis": 0} if op_type == "Concat" else {}
    graph = graph_model([node(op_type, ["x", "n"], ["y"], **attributes)], {"x": shape}, ["y"],
                        {"n": np.ones(shape, np.float64)})  # fmt: skip
    with pytest.raises(UnsupportedModel, match="different element types: float32, float64"):
        load(_declared(graph))


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_weights_of_another_number_of_dimensions_are_refused(op_type: str) -> None:
    weight = np.ones((2, 2, 3, 3), np.float32)
    model = _declared(operator_model(op_type, [(1, 2, 7)], [weight]))
    with pytest.raises(UnsupportedModel, match="the data has 3 dimensions"):
        load(model)


def test_integers_are_not_scaled_by_fractions() -> None:
    model = graph_model(
        [node("Gemm", ["a", "b"], ["y"], alpha=0.5)],
        {"a": (2, 3), "b": (3, 2)},
        ["y"],
        types={"a": TensorProto.INT32, "b": TensorProto.INT32},
    )
    with pytest.raises(UnsupportedModel, match=r"0\.5 as int32"):
        load(_declared(model))


def _declared(model: Any) -> Any:
    """*model* with the types of its outputs declared: shape inference leaves out what is wrong."""
    for output in model.graph.output:
        if not output.type.tensor_type.HasField("shape"):
            output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, [None]))
    return model


@pytest.mark.parametrize("pads", [(0, 2, 1, 0), (1, -1, 0, 3), (-1, 0, 0, -2)])
def test_only_a_run_may_know_the_padding(pads: tuple[int, ...], rng: np.random.Generator) -> None:
    one = node("Pad", ["x", "pads", "value"], ["y"])
    model = graph_model([one], {"x": (3, 5), "value": ()}, ["y"], {"pads": ints(*pads)})
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_the_padding_of_a_run_is_of_the_type(kind: int, rng: np.random.Generator) -> None:
    one = node("Pad", ["x", "pads", "value"], ["y"])
    types = dict.fromkeys(("x", "value", "y"), kind)
    model = graph_model(
        [one], {"x": (3, 5), "value": (1,)}, ["y"], {"pads": ints(1, 0, 0, 2)}, types=types
    )
    assert_same_as_onnxruntime(model, rng)


def test_a_padding_with_zeros_keeps_their_sign() -> None:
    held: dict[str, Array] = {"pads": ints(1, 2), "value": np.asarray(-0.0, np.float32)}
    model = graph_model([node("Pad", ["x", "pads", "value"], ["y"])], {"x": (3,)}, ["y"], held)
    [found] = run_network(compiled(model), {"x": np.ones(3, np.float32)})
    assert np.signbit(found).tolist() == [True, False, False, False, True, True]


def test_only_a_run_may_know_the_values_of_rows(rng: np.random.Generator) -> None:
    held: dict[str, Array] = {"at": ints(2, -1, 7), "depth": np.asarray(5, np.int64)}
    one = node("OneHot", ["at", "depth", "values"], ["y"])
    assert_same_as_onnxruntime(graph_model([one], {"values": (2,)}, ["y"], held), rng)


@pytest.mark.parametrize("upper", [0, 1])
def test_only_a_run_may_know_the_diagonal(upper: int, rng: np.random.Generator) -> None:
    one = node("Trilu", ["x", "k"], ["y"], upper=upper)
    model = graph_model([one], {"x": (4, 6), "k": ()}, ["y"], types={"k": TensorProto.INT64})
    network, x = compiled(model), rng.standard_normal((4, 6)).astype(np.float32)
    for k in (-FAR, -3, 0, 2, FAR):
        [found] = run_network(network, {"x": x, "k": np.asarray(k, np.int64)})
        place = np.arange(6) - np.arange(4)[:, None]
        kept = place >= k if upper else place <= k
        np.testing.assert_array_equal(found, np.where(kept, x, 0))
