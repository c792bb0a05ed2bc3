"""Scan: a loop over the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import helper

from ansorpy.frontend.onnx.context import NodeContext, Unequal, Unsupported
from ansorpy.frontend.onnx.control.loop import run_loop
from ansorpy.frontend.onnx.control.regions import LoopPlan
from ansorpy.frontend.onnx.control.scopes import Translator, body_of
from ansorpy.frontend.onnx.control.values import Value
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
    read_axes = _axes(ctx, "scan_input_axes", count)
    read = [
        (_first_axis(ctx, value, axis), is_last)
        for value, axis, is_last in zip(
            values[states:], read_axes, _are_last(ctx, _DIRECTIONS, count), strict=True
        )
    ]
    plan = LoopPlan(
        _rows_of(ctx, [value for value, _ in read]), read=tuple(read),
        written=_are_last(ctx, "scan_output_directions", rows),
        wanted=tuple(ctx.is_output_used(states + n) for n in range(rows)),
    )  # fmt: skip
    made = run_loop(translator, ctx, body, plan, values[:states])
    axes = _axes(ctx, "scan_output_axes", rows)
    moved = [
        _moved(ctx, value, axis) for value, axis in zip(made[states:], axes, strict=True)
    ]  # fmt: skip
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


def _axes(ctx: NodeContext, name: str, count: int) -> Sequence[int]:
    """The axis of each of *count* tensors along which its rows lie."""
    axes = [int(axis) for axis in ctx.attr(name, [0] * count)]
    if len(axes) != count:
        raise Unsupported(f"{name}={axes}", f"give {count} of them")
    return axes


def _are_last(ctx: NodeContext, name: str, count: int) -> tuple[bool, ...]:
    """For each of *count* tensors, whether its last row comes first."""
    given = ctx.attr(name, [0] * count)
    if len(given) != count:
        raise Unsupported(f"{name}={list(given)}", f"give {count} of them")
    return tuple(map(bool, given))


def _first_axis(ctx: NodeContext, value: str, axis: int) -> str:
    """*value* with *axis* in front."""
    rank = len(ctx.type_of(value).shape)
    axis = ctx.axis(axis, rank)
    return ctx.transpose(value, (axis, *(a for a in range(rank) if a != axis)))


def _moved(ctx: NodeContext, value: Value, axis: int) -> Value:
    """*value* with its first axis at the place *axis*."""
    if not isinstance(value, str) or not value:
        return value
    rank = len(ctx.type_of(value).shape)
    axis = ctx.axis(axis, rank)
    perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    if most(ctx.type_of(value).size) == 0:
        shape = ctx.type_of(value).shape
        return ctx.reshape(value, tuple(shape[a] for a in perm))
    return ctx.transpose(value, tuple(perm))


OPERATORS = {"Scan": scan}
