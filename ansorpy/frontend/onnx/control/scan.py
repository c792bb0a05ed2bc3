"""Scan: a loop over the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import helper

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.control.loop import run_loop
from ansorpy.frontend.onnx.control.regions import LoopPlan
from ansorpy.frontend.onnx.control.scopes import Translator, body_of
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.unsupported import Unequal, Unsupported
from ansorpy.ir.extents import AnyExtent, most

__all__ = ["OPERATORS"]

_DIRECTIONS = "scan_input_directions"
"""The attribute that Scan has from operator set 9 on, in place of ``directions``."""


def scan(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The state after the last row, then the rows that the body gave."""
    if ctx.opset < 9 and not any(a.name == _DIRECTIONS for a in ctx.node.attribute):
        return _batched(translator, ctx)
    body = body_of(ctx, "body")
    count = ctx.attr("num_scan_inputs", 0)
    states = len(ctx.node.input) - count
    rows = len(body.output) - states
    values = [ctx.input(number) for number in range(states + count)]
    axes, are_last = (_numbers(ctx, n, count) for n in ("scan_input_axes", _DIRECTIONS))
    read = tuple(
        (_first_axis(ctx, value, axis), bool(is_last))
        for value, axis, is_last in zip(values[states:], axes, are_last, strict=True)
    )
    plan = LoopPlan(
        _rows_of(ctx, [value for value, _ in read]), read=read,
        written=tuple(map(bool, _numbers(ctx, "scan_output_directions", rows))),
        wanted=tuple(ctx.is_output_used(states + n) for n in range(rows)),
    )  # fmt: skip
    made = run_loop(translator, ctx, body, plan, values[:states])
    places = _numbers(ctx, "scan_output_axes", rows)
    moved = [_moved(ctx, *pair) for pair in zip(made[states:], places, strict=True)]
    return [*made[:states], *moved]


def _batched(translator: Translator, ctx: NodeContext) -> list[Value]:
    """Scan of operator set 8: for each element of a batch, a loop over the rows of its tensors."""
    if ctx.has_input(0):
        raise Unsupported("sequence_lens", "pad the sequences and leave this input out")
    body, count = body_of(ctx, "body"), ctx.attr("num_scan_inputs", 0)
    given, made = [i.name for i in body.input], [f"{o.name}.all" for o in body.output]
    directions = list(ctx.attr("directions", [0] * count))
    attributes: dict[str, Any] = {"num_scan_inputs": count, _DIRECTIONS: directions}
    inner = helper.make_node("Scan", [f"{n}.all" for n in given], made, body=body, **attributes)
    element = helper.make_graph(
        [inner], "element", list(map(helper.make_empty_tensor_value_info, inner.input)),
        list(map(helper.make_empty_tensor_value_info, made)),
    )  # fmt: skip
    values = [ctx.input(number) for number in range(1, len(ctx.node.input))]
    plan = LoopPlan(
        _rows_of(ctx, values), read=tuple((value, False) for value in values),
        written=(False,) * len(made), wanted=tuple(map(ctx.is_output_used, range(len(made)))),
    )  # fmt: skip
    return run_loop(translator, ctx, element, plan, [])


def _rows_of(ctx: NodeContext, values: Sequence[str]) -> AnyExtent:
    """The extent of the first axis of all *values*."""
    extents = [ctx.type_of(value).shape[0] for value in values]
    for extent in extents[1:]:
        if extent != extents[0]:
            raise Unequal((extents[0], extent))
    return extents[0]


def _numbers(ctx: NodeContext, name: str, count: int) -> list[int]:
    """The attribute *name*, which has a number for each of *count* tensors; 0 by default."""
    given = [int(number) for number in ctx.attr(name, [0] * count)]
    if len(given) != count:
        raise Unsupported(f"{name}={given}", f"give {count} of them")
    return given


def _first_axis(ctx: NodeContext, value: str, axis: int) -> str:
    """*value* with *axis* in front."""
    return ctx.move_axis(value, ctx.axis(axis, len(ctx.type_of(value).shape)), 0)


def _moved(ctx: NodeContext, value: Value, axis: int) -> Value:
    """*value* with its first axis at the place *axis*."""
    if not isinstance(value, str) or not value:
        return value
    shape = ctx.type_of(value).shape
    axis = ctx.axis(axis, len(shape))
    if most(ctx.type_of(value).size) == 0:
        return ctx.reshape(value, (*shape[1 : axis + 1], shape[0], *shape[axis + 1 :]))
    return ctx.move_axis(value, 0, axis)


OPERATORS = {"Scan": scan}
