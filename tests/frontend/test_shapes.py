"""Shapes of inputs: what the model states, what the caller sets, and what is assumed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.errors import UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load, load_with_ranges
from ansorpy.frontend.onnx.shapes import input_shapes
from ansorpy.ir.extents import dim
from ansorpy.size_ranges import SizeRange
from tests.frontend.models import graph_model, node


def one_input(*axes: int | str | None, name: str = "x") -> ModelProto:
    return graph_model([node("Relu", [name], ["y"])], {name: axes}, ["y"])


def two_inputs(x: tuple[Any, ...], m: tuple[Any, ...], op: str = "Concat") -> ModelProto:
    joined = node("Concat", ["x", "m"], ["y"], axis=0) if op == "Concat" else None
    return graph_model([joined or node(op, ["x", "m"], ["y"])], {"x": x, "m": m}, ["y"])


DYNAMIC = one_input("batch", 3, "width", None)


def test_open_axes_are_dimensions_with_the_names_of_the_model_or_of_their_place() -> None:
    found = input_shapes(DYNAMIC, dims={"batch": (1, 4), "width": [7, 9], "x.3": "8..64:step=8"})
    batch, width, last = dim("batch", 1, 4), dim("width", 7, 9), dim("x.3", 8, 64, step=8)
    assert found.shapes == {"x": (batch, 3, width, last)}
    assert {d.name: r for d, r in found.ranges.items()} == {
        "batch": SizeRange(1, 4),
        "width": SizeRange(7, 9, calls=((7, 1), (9, 1))),
        "x.3": SizeRange(8, 64, 8),
    }
    assert not found.assumed


def test_a_shape_sets_the_dimensions_of_other_inputs_too() -> None:
    model = two_inputs(("n", "w"), ("n", "w"))
    found = input_shapes(model, shapes={"x": (5, (2, 9))})
    assert found.shapes == {name: (5, dim("w", 2, 9)) for name in ("x", "m")}


def test_static_sizes_are_numbers() -> None:
    assert load(one_input("batch", 3), dims={"batch": 4}).types["x"].shape == (4, 3)
    assert load(DYNAMIC, shapes={"x": (2, 3, 5, 7)}).types["x"].shape == (2, 3, 5, 7)


def test_one_name_may_have_several_numbers() -> None:
    model = two_inputs(("n", 3), ("n", 3))
    found = input_shapes(model, shapes={"x": (2, 3), "m": (4, 3)})
    assert found.shapes == {"x": (2, 3), "m": (4, 3)} and not found.assumed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"dims": {"bach": 1}},
            "^the model has no dynamic .* bach\nhint: it has batch, width, x.3",
        ),
        ({"shapes": {"z": (1,)}}, "^the model has no input named z"),
        (
            {"shapes": {"x": (1, 3)}},
            r"^the shape of x: .* has 4 dimensions, not 2\nhint: give .* of \['batch', 3, ",
        ),
        (
            {"shapes": {"x": (1, 4, 5, 5)}},
            "^the shape of x: the model fixes .*\nhint: give these, or",
        ),
        ({"shapes": {"x": (1, (3, 4), 5, 5)}}, "^the shape of x: the model fixes"),
        ({"shapes": {"x": (-1, 3, 5, 5)}}, "no size may be negative"),
        ({"shapes": {"x": "1x3x5x5"}}, "is not the shape of x"),
        ({"shapes": {"x": (1, 3, (1, (2, 3)), 5)}}, r"is not a size of x\[2\]"),
        (
            {"shapes": {"x": (1, 3, 5, 5)}, "dims": {"batch": 2}},
            "batch is 2\nhint: give batch once",
        ),
        ({"dims": {"batch": (3, 1)}}, "the range 3..1 is empty"),
    ],
)
def test_wrong_sizes_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(DYNAMIC, **arguments)


def test_a_number_has_no_other_shape() -> None:
    model = two_inputs((), (4, 3), "Add")
    assert load(model, shapes={"x": ()}).types["x"].shape == ()
    with pytest.raises(UsageError, match="^the shape of x: .* has 0 dimensions, not 1"):
        load(model, shapes={"x": (3,)})


def test_one_dimension_has_one_range() -> None:
    model = two_inputs(("n", 3), ("n", 3))
    with pytest.raises(UsageError, match=r"^the dimension n is 1..4, 5"):
        load(model, shapes={"x": (5, 3), "m": ((1, 4), 3)})


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("past + seq", "past + seq"),
        ("2*seq", "2*seq"),
        ("past//2", "past//2"),
        ("floor(past/2 - 1/2) + 1", "(past + 1)//2"),
        ("Max(1, seq)", "seq"),
        ("PythonMod(-seq, 8) + seq", "8*((seq + 7)//8)"),
        ("CeilToInt(IntTrueDiv(past, 2))", "(past + 1)//2"),
        ("TruncToInt(0.5*ToFloat(past))", "past//2"),
        ("seq**2", "seq*seq"),
        ("seq**past", "seq**past"),
        ("((seq + past)**8)**8", "((seq + past)**8)**8"),
        ("floor(0.7*seq)", "floor(0.7*seq)"),
        ("other + seq", "other + seq"),
        ("batch-size", "batch-size"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_names_may_be_expressions_of_names(text: str, want: str) -> None:
    model = two_inputs((text, 4), ("seq", "past"))
    found = input_shapes(model, dims={"seq": (1, 9), "past": (1, 9)})
    assert str(found.shapes["x"][0]) == want
    fixed = input_shapes(model, dims={"seq": 3, "past": 5})
    is_own = text == want and text not in ("past + seq", "2*seq", "past//2")
    assert [*fixed.assumed] == ([want] if is_own else [])


def test_an_expression_may_be_set_itself() -> None:
    model = two_inputs(("past + 1", 4), ("past", 4))
    assert input_shapes(model, dims={"past": 6}).shapes["x"] == (7, 4)
    assert input_shapes(model, dims={"past": 6, "past + 1": 9}).shapes["x"] == (9, 4)
    with pytest.raises(UsageError, match=r"axis 0 is past \+ 1, hence 7, not 9(.|\n)*--dim past="):
        input_shapes(model, dims={"past": 6}, shapes={"x": (9, 4)})
    with pytest.raises(UsageError, match=r"^the shape of x: axis 0 is past \+ 1, and has no "):
        input_shapes(model, shapes={"x": ((1, 9), 4)})
    short = two_inputs(("seq - 1", 4), ("seq", 4))
    with pytest.raises(UsageError, match="may be below 0") as caught:
        input_shapes(short, dims={"seq": (0, 9)})
    assert caught.value.hint == "change --dim seq=N..M (dims= in Python)"


@pytest.mark.parametrize(
    ("axes", "name", "want"),
    [
        (("batch", 7), "batch", "1..32"),
        ((None, 7), "x.0", "1..32"),
        (("batch_size", "sequence_length"), "sequence_length", "1..512"),
        ((1, 12, "past_sequence_length", 64), "past_sequence_length", "0..511"),
        ((1, 3, "h", None), "x.3", "32..1280:step=32"),
        ((1, None, 64, 3), "x.1", "32..1280:step=32"),
        ((1, 3, "image_height", 224), "image_height", "32..1280:step=32"),
        ((1, None), "x.1", "1..512"),
        (("batch", "samples"), "samples", "1..160000"),
    ],
)
def test_what_is_left_open_gets_a_range_that_is_said(
    axes: tuple[int | str | None, ...],
    name: str,
    want: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = load_with_ranges(one_input(*axes))
    assert {d.name: str(r) for d, r in found.ranges.items()}[name] == want
    assert f"--dim {name}={want}" in caplog.text


@pytest.mark.parametrize(
    ("name", "shape", "want"),
    [("past_key_0", (1, 4, None, 8), "0..511"), ("audio", (1, None), "1..160000")],
)
def test_the_name_of_an_input_tells_of_its_axes(
    name: str, shape: tuple[int | None, ...], want: str
) -> None:
    model = graph_model([node("Relu", [name], ["y"])], {name: shape}, ["y"])
    assert [str(r) for r in load_with_ranges(model).ranges.values()] == [want]


def test_flags_can_be_given_to_a_shell(caplog: pytest.LogCaptureFixture) -> None:
    load(one_input("some rows", 3))
    assert "assuming --dim 'some rows=1..32' (dims= in Python)\n" in caplog.text


def test_dimensions_that_must_be_equal_are_one(caplog: pytest.LogCaptureFixture) -> None:
    """Exporters give the same size several names."""
    model = graph_model(
        [node("Concat", ["past", "x"], ["k"], axis=1), node("Add", ["k", "mask"], ["y"])],
        {"x": ("b", "seq", 8), "past": (None, "past", 8), "mask": ("batch", "total", 1)},
        ["y"],
    )
    found = load_with_ranges(model, dims={"seq": (1, 4), "past": (0, 9)})
    assert [str(e) for e in found.graph.types["mask"].shape] == ["b", "past + seq", "1"]
    assert {d.name for d in found.ranges} == {"b", "seq", "past"}
    assert "past.0 = b" in caplog.text and "total = past + seq" in caplog.text


def test_dimensions_that_are_equal_only_if_two_are_one() -> None:
    """An exporter that names every axis apart divides one batch by the other."""
    sizes = [
        node("Shape", ["x"], ["sx"], end=1), node("Shape", ["t"], ["st"]),
        node("ReduceProd", ["sx3"], ["all"]), node("Div", ["all", "st"], ["each"]),
        node("Shape", ["x"], ["sx3"], end=2), node("Concat", ["st", "each", "c"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
    ]  # fmt: skip
    ordered = [sizes[n] for n in (1, 4, 2, 3, 5, 6)]
    held = {"c": np.asarray([8], np.int64)}
    model = graph_model(ordered, {"x": (None, "rows", 8), "t": (None,)}, ["y"], held)
    assert len({d.name for d in load_with_ranges(model).ranges}) == 2


def test_halves_that_are_doubled_need_even_sizes() -> None:
    halved = node("MaxPool", ["x"], ["h"], kernel_shape=[3], strides=[2], pads=[1, 1])
    scales = {"s": np.asarray([1, 1, 2], np.float32)}
    doubled = node("Resize", ["h", "", "s"], ["d"])
    joined = node("Concat", ["x", "d"], ["y"], axis=1)
    model = graph_model([halved, doubled, joined], {"x": (1, 4, None)}, ["y"], scales)
    found = load_with_ranges(model)
    assert {d.name: str(r) for d, r in found.ranges.items()} == {"x.2": "2..512:step=2"}
    with pytest.raises(UnsupportedModel, match="they must be equal"):
        load(model, dims={"x.2": (1, 9)})


def test_extents_that_never_agree_are_refused() -> None:
    model = two_inputs(("n", 3), ("n + 1", 3), "Add")
    with pytest.raises(UnsupportedModel, match=r"n and n \+ 1"):
        load(model)


def test_stated_ranges_must_agree() -> None:
    model = two_inputs(("n", 3), ("m", 3), "Add")
    assert len(load_with_ranges(model, dims={"n": (1, 4), "m": (1, 4)}).ranges) == 1
    with pytest.raises(UnsupportedModel, match=r"choose one size.*--dim n=1 --dim m=1 \(dims= in"):
        load(model, dims={"n": (1, 4), "m": (1, 5)})
    assert load(model, dims={"n": 4}).types["m"].shape == (4, 3)


def test_assumed_ranges_begin_where_the_operators_fit() -> None:
    """Windows and indices need a least size, and tables have a greatest one."""
    nodes = [node("Conv", ["x", "w"], ["a"], strides=[5]), node("Conv", ["a", "v"], ["y"])]
    weights = {"w": np.ones((3, 2, 10), np.float32), "v": np.ones((1, 3, 4), np.float32)}
    waves = graph_model(nodes, {"x": (1, None, None)}, ["y"], weights)
    found = load_with_ranges(waves)
    assert found.graph.types["x"].shape == (1, 2, dim("x.2", 25, 512))
    with pytest.raises(UnsupportedModel, match="does not fit .*; give larger sizes of x.2"):
        load(waves, dims={"x.2": (24, 512)})
    last = graph_model([node("Gather", ["x", "i"], ["y"])], {"x": (None, 3)}, ["y"],
                       {"i": np.asarray([-3, 4, 0])})  # fmt: skip
    assert load(last).types["x"].shape == (dim("x.0", 5, 32), 3)
    top = graph_model([node("TopK", ["x", "k"], ["y", "places"])], {"x": (2, None)}, ["y"],
                      {"k": np.asarray([10])})  # fmt: skip
    assert load(top).types["x"].shape == (2, dim("x.1", 10, 512))
    with pytest.raises(UnsupportedModel, match="the axis has .*; give larger sizes of x.1"):
        load(top, dims={"x.1": (3, 12)})
