"""Decision trees as arrays over their nodes, and the walk of all samples down all trees at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorpy.arrays import Floats, Ints
from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Expand, Fn, Gather, GatherElements, Reduce, ReduceKind
from ansorpy.ir.dtypes import DType

__all__ = ["AGGREGATES", "MODES", "NEUTRAL", "Forest", "aggregated"]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "MEMBER")
"""Comparisons of a feature with a node's value, by number."""


@dataclass(frozen=True)
class Forest:
    """All nodes of all trees; a leaf is its own successor.

    Args:
        modes: Numbers in :data:`MODES`.
        yes: The successor where the comparison holds; *no*: where it does not.
        missing: Whether a feature that is NaN goes to *yes*, whatever the comparison says.
        members: The values with which a node of mode ``MEMBER`` compares, filled up with NaN.
        weights: ``[nodes, targets]``; those of nodes that are no leaves do not matter.
    """

    features: Ints
    values: Floats
    modes: Ints
    yes: Ints
    no: Ints
    missing: NDArray[np.bool_]
    members: Floats
    roots: Ints
    weights: Floats

    @property
    def depth(self) -> int:
        """Steps from the roots to the deepest leaf; refuses a circle."""
        front, steps = np.unique(self.roots), 0
        while True:
            inner = front[self.yes[front] != front]
            if not len(inner):
                return steps
            front, steps = np.unique([*self.yes[inner], *self.no[inner]]), steps + 1
            if steps > len(self.yes):
                raise Unsupported("nodes_truenodeids", "the nodes of a tree form a circle")


def _leaves(ctx: NodeContext, x: str, forest: Forest) -> str:
    """``[samples, trees]``: the leaf that each sample of *x* ``[samples, features]`` reaches."""
    samples, features = ctx.type_of(x).shape
    if not len(forest.roots) or forest.features.max(initial=0) >= ctx.number(features, "a tree"):
        raise Unsupported("nodes_featureids", f"the data have {features} features")
    roots = ctx.literal(forest.roots[None, :], DType.INT64)
    node = ctx.emit(Expand((samples, len(forest.roots))), [roots])
    for _ in range(forest.depth):
        holds = _holds(ctx, x, node, forest)
        node = ctx.apply(
            Fn.WHERE, holds, _at(ctx, forest.yes, node, DType.INT64),
            _at(ctx, forest.no, node, DType.INT64),
        )  # fmt: skip
    return node


def _at(ctx: NodeContext, table: np.ndarray, node: str, dtype: DType) -> str:
    """The entry of *table* for each node."""
    if len(table) and np.all(table == table[0]):
        return ctx.literal(table[0], dtype)
    return ctx.emit(Gather(0), [ctx.literal(table.astype(dtype.numpy), dtype), node])


def _holds(ctx: NodeContext, x: str, node: str, forest: Forest) -> str:
    """Whether the comparison of each node holds for the sample that is there."""
    dtype = ctx.type_of(x).dtype
    places = ctx.emit(Gather(0), [ctx.literal(forest.features, DType.INT64), node])
    given = ctx.emit(GatherElements(1), [x, places])
    limit = _at(ctx, forest.values, node, dtype)
    kinds = [int(k) for k in np.unique(forest.modes[forest.yes != np.arange(len(forest.yes))])]
    found = _compared(ctx, kinds[0], given, limit, node, forest)
    for kind in kinds[1:]:
        is_kind = ctx.apply(
            Fn.EQUAL, _at(ctx, forest.modes, node, DType.INT64), ctx.literal(kind, DType.INT64)
        )
        found = ctx.apply(
            Fn.WHERE, is_kind, _compared(ctx, kind, given, limit, node, forest), found
        )
    if not forest.missing.any():
        return found
    absent = ctx.apply(Fn.IS_NAN, given)
    goes = _at(ctx, forest.missing, node, DType.BOOL)
    return ctx.apply(Fn.OR, found, ctx.apply(Fn.AND, absent, goes))


def _compared(
    ctx: NodeContext, kind: int, given: str, limit: str, node: str, forest: Forest
) -> str:
    match MODES[kind]:
        case "BRANCH_LEQ":
            return ctx.apply(Fn.LESS_EQUAL, given, limit)
        case "BRANCH_LT":
            return ctx.apply(Fn.LESS, given, limit)
        case "BRANCH_GTE":
            return ctx.apply(Fn.LESS_EQUAL, limit, given)
        case "BRANCH_GT":
            return ctx.apply(Fn.LESS, limit, given)
        case "BRANCH_EQ":
            return ctx.apply(Fn.EQUAL, given, limit)
        case "BRANCH_NEQ":
            return ctx.apply(Fn.NOT, ctx.apply(Fn.EQUAL, given, limit))
        case _:
            return _is_member(ctx, given, node, forest)


def _is_member(ctx: NodeContext, given: str, node: str, forest: Forest) -> str:
    shape, dtype = ctx.type_of(given).shape, ctx.type_of(given).dtype
    members = ctx.emit(Gather(0), [ctx.literal(forest.members.astype(dtype.numpy), dtype), node])
    same = ctx.apply(Fn.EQUAL, members, ctx.reshape(given, (*shape, 1)))
    found = ctx.emit(Reduce(ReduceKind.MAX, (2,), False), [ctx.cast(same, DType.INT32)])
    return ctx.apply(Fn.LESS, ctx.literal(0, DType.INT32), found)


AGGREGATES: Mapping[str, ReduceKind] = {
    "AVERAGE": ReduceKind.SUM,
    "SUM": ReduceKind.SUM,
    "MIN": ReduceKind.MIN,
    "MAX": ReduceKind.MAX,
}
"""How weights are aggregated over trees, in the order of the numbers of the newer form."""
NEUTRAL: Mapping[str, float] = {"MIN": np.inf, "MAX": -np.inf}
"""The weight of a leaf for targets that it has none for, by what is not a sum."""


def aggregated(ctx: NodeContext, x: str, forest: Forest, how: str, dtype: DType) -> str:
    """``[samples, targets]``: the weights of the leaves that samples reach, over all trees.

    Targets for which no leaf has a weight get 0, as in onnxruntime.
    """
    leaves = _leaves(ctx, x, forest)
    weights = ctx.literal(forest.weights.astype(dtype.numpy), dtype)
    found = ctx.emit(Gather(0), [weights, leaves])
    if how not in AGGREGATES:
        raise Unsupported(f"aggregate_function={how}", f"use one of {', '.join(AGGREGATES)}")
    total = ctx.emit(Reduce(AGGREGATES[how], (1,), False), [found])
    if how in NEUTRAL:
        missed = ctx.apply(Fn.EQUAL, total, ctx.literal(NEUTRAL[how], dtype))
        return ctx.apply(Fn.WHERE, missed, ctx.literal(0.0, dtype), total)
    return ctx.divided(total, len(forest.roots)) if how == "AVERAGE" else total
