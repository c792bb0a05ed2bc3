"""Rebuild a compute DAG around replaced operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count

from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import Axis, AxisKind, Expr, Load
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["fresh_axes", "map_loads", "replace_ops", "unused_name", "with_body"]


class _LoadMapper(Rewriter):
    def __init__(self, fn: Callable[[Load], Expr]):
        super().__init__()
        self.fn = fn

    def leave(self, e: Expr) -> Expr:
        return self.fn(e) if isinstance(e, Load) else e


def map_loads(expr: Expr, fn: Callable[[Load], Expr]) -> Expr:
    """*expr* with every load replaced by ``fn(load)``, indices first; same object if unchanged."""
    return _LoadMapper(fn).expr(expr)


def fresh_axes(axes: Iterable[Axis], kind: AxisKind = AxisKind.SPACE) -> tuple[Axis, ...]:
    """New axes of *kind* with the names and extents of *axes*."""
    return tuple(Axis(axis.name, axis.extent, kind) for axis in axes)


def unused_name(name: str, axes: Iterable[Axis]) -> str:
    """*name*, followed by as many ``_`` as it takes to differ from the names of *axes*."""
    taken = {axis.name for axis in axes}
    while name in taken:
        name += "_"
    return name


def with_body(op: ComputeOp, body: Expr) -> ComputeOp:
    """*op* with another *body* over the same axes."""
    if body is op.body:
        return op
    return ComputeOp(op.name, op.shape, op.axes, op.reduce_axes, body, op.attrs)


def replace_ops(
    dag: ComputeDAG, new: Mapping[Tensor, ComputeOp]
) -> tuple[ComputeDAG, dict[Tensor, Tensor]]:
    """*dag* with some operators replaced, and the mapping from old operators to new ones.

    Replacements may read operators that are not in *dag*; these are renamed if their names are
    taken.
    """
    became: dict[Tensor, Tensor] = {}
    known = {*dag.ops, *new.values()}
    taken = {op.name for op in dag.ops}

    def current(load: Load) -> Expr:
        source = load.source
        if isinstance(source, Tensor) and source in became and became[source] is not source:
            return Load(became[source], load.indices)
        return load

    fresh: set[Tensor] = set()

    def renew(op: ComputeOp) -> ComputeOp:
        """Rebuild an operator that only the replacement reads on the new operators."""
        for producer in loads_of(op):
            if producer not in became and isinstance(producer, ComputeOp) and producer not in fresh:
                became[producer] = renew(producer)
        fresh.add(op)
        made = with_body(op, map_loads(op.body, current))
        if op in known or op.name not in taken:
            taken.add(op.name)
            return made
        names = (f"{op.name}.{number}" for number in count(1))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        return ComputeOp(name, made.shape, made.axes, made.reduce_axes, made.body, made.attrs)

    for op in dag.ops:
        if isinstance(op, PlaceholderOp):
            became[op] = op
        else:
            assert isinstance(op, ComputeOp)
            became[op] = renew(new.get(op, op))
    return ComputeDAG([became[op] for op in dag.outputs], dag.args, dag.strides), became
