"""Loops of few iterations, whose bodies are translated once for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.control.regions import LoopPlan
from ansorpy.frontend.onnx.control.scopes import Translator
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import TensorType

__all__ = ["unrolled_loop"]


def unrolled_loop(
    translator: Translator,
    ctx: NodeContext,
    body: GraphProto,
    plan: LoopPlan,
    state: Sequence[Value],
) -> list[Value]:
    """The results of the loop that *plan* describes, each of its iterations translated on its own.

    Args:
        state: What the first iteration reads.

    Raises:
        Blamed: Nodes of the body are refused.
        Unsupported: Whether there is another iteration is computed at run time.
    """
    names = [info.name for info in body.input]
    trips = plan.trips
    assert isinstance(trips, int)
    rows: list[list[str]] = [[] for _ in plan.written]
    current = list(state)
    for i in range(trips):
        numbers = _numbers(ctx.builder, i)
        given: list[Value] = [
            *(numbers if plan.is_loop else ()), *current,
            *(_row(ctx, value, trips - 1 - i if is_last else i) for value, is_last in plan.read),
        ]  # fmt: skip
        known = dict(zip(names, given, strict=True)) | ctx.numbered(numbers[0])
        made = translator.inlined(body, known)
        goes_on = _holds(ctx, made.pop(0)) if plan.is_loop else True
        current = made[: len(current)]
        for held, row in zip(rows, made[len(current) :], strict=True):
            if not isinstance(row, str):
                raise Unsupported("rows of a loop", "they must be tensors")
            held.append(row)
        if not goes_on:
            break
    if not all(rows):
        return [*current, *_no_rows(translator, ctx, body, plan, current)]
    stacked = [
        [_raised(ctx, row) for row in (held[::-1] if is_last else held)]
        for held, is_last in zip(rows, plan.written, strict=True)
    ]
    return [*current, *(ctx.concat(held, 0) for held in stacked)]


def _numbers(builder: GraphBuilder, i: int) -> list[str]:
    """The number of the iteration, and that the condition holds."""
    held = {"iteration": np.asarray(i, np.int64), "condition": np.asarray(True)}
    return [builder.share_constant(name, array) for name, array in held.items()]


def _row(ctx: NodeContext, value: str, place: int) -> str:
    return ctx.reshape(ctx.slice(value, {0: Cut(place, 1)}), ctx.type_of(value).shape[1:])


def _raised(ctx: NodeContext, row: str) -> str:
    return ctx.reshape(row, (1, *ctx.type_of(row).shape))


def _holds(ctx: NodeContext, condition: Value) -> bool:
    array = ctx.builder.constants.get(condition) if isinstance(condition, str) else None
    if array is None:
        raise Unsupported("condition", "it is computed at run time, but iterations differ")
    return bool(array.item())


def _no_rows(
    translator: Translator,
    ctx: NodeContext,
    body: GraphProto,
    plan: LoopPlan,
    state: Sequence[Value],
) -> list[str]:
    """The rows of no iteration, which have the types that the body gives them."""
    types = ctx.builder.types
    with translator.inside() as inner:
        given: list[Value] = [*_numbers(inner.builder, 0)] if plan.is_loop else []
        given += [inner.copied(value) for value in state]
        for value, _ in plan.read:
            kind = types[value]
            given.append(inner.add_part(value, TensorType(kind.shape[1:], kind.dtype)))
        names = [info.name for info in body.input]
        made = translator.inlined(body, dict(zip(names, given, strict=True)))
        kinds = [
            (inner.builder.types[row], inner.builder.narrow.get(row))
            for row in made[plan.is_loop + len(state) :] if isinstance(row, str)
        ]  # fmt: skip
    return [
        ctx.builder.add_empty(ctx.node.output[0], TensorType((0, *kind.shape), kind.dtype), narrow)
        for kind, narrow in kinds
    ]
