"""Rebuilding a compute DAG around replaced operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import Binary, Call, Cast, Compare, Expr, Load, Reduce, Select
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["map_loads", "replace_ops", "with_body"]


def map_loads(expr: Expr, fn: Callable[[Load], Expr]) -> Expr:
    """*expr* with every load replaced by ``fn(load)``, indices first; same object if unchanged."""

    def go(e: Expr) -> Expr:
        match e:
            case Load(source, indices):
                new = tuple(go(i) for i in indices)
                same = all(a is b for a, b in zip(new, indices, strict=True))
                return fn(e if same else Load(source, new))
            case Binary(op, a, b):
                x, y = go(a), go(b)
                return e if x is a and y is b else Binary(op, x, y)
            case Compare(cmp, a, b):
                x, y = go(a), go(b)
                return e if x is a and y is b else Compare(cmp, x, y)
            case Call(f, args):
                new = tuple(go(a) for a in args)
                same = all(a is b for a, b in zip(new, args, strict=True))
                return e if same else Call(f, new)
            case Select(cond, then, other):
                c, t, o = go(cond), go(then), go(other)
                return e if c is cond and t is then and o is other else Select(c, t, o)
            case Cast(dtype, x):
                y = go(x)
                return e if y is x else Cast(dtype, y)
            case Reduce(kind, source, axes):
                y = go(source)
                return e if y is source else Reduce(kind, y, axes)
            case _:
                return e

    return go(expr)


def with_body(op: ComputeOp, body: Expr) -> ComputeOp:
    """*op* computing *body* over the same axes."""
    if body is op.body:
        return op
    return ComputeOp(op.name, op.shape, op.axes, op.reduce_axes, body, op.attrs)


def replace_ops(
    dag: ComputeDAG, new: Mapping[Tensor, ComputeOp]
) -> tuple[ComputeDAG, dict[Tensor, Tensor]]:
    """*dag* with some operators replaced, and what each of its operators became.

    Replacements may read operators that are new altogether.
    """
    became: dict[Tensor, Tensor] = {}

    def current(load: Load) -> Expr:
        source = load.source
        if isinstance(source, Tensor) and source in became and became[source] is not source:
            return Load(became[source], load.indices)
        return load

    fresh: set[Tensor] = set()

    def renew(op: ComputeOp) -> ComputeOp:
        """Bring the operators that only the replacement reads up to date."""
        for producer in loads_of(op):
            if producer not in became and isinstance(producer, ComputeOp) and producer not in fresh:
                became[producer] = renew(producer)
        fresh.add(op)
        return with_body(op, map_loads(op.body, current))

    for op in dag.ops:
        if isinstance(op, PlaceholderOp):
            became[op] = op
        else:
            assert isinstance(op, ComputeOp)
            became[op] = renew(new.get(op, op))
    return ComputeDAG([became[op] for op in dag.outputs], dag.args), became
