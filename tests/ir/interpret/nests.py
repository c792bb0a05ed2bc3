"""Loop programs written by hand, and a plain lowering of any definition."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, Load, Reduce, Var, const
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Param,
    Program,
    Role,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["buffer", "load", "loops", "lower_plainly", "program"]


def buffer(name: str, *shape: int, dtype: str = "float32", scope: str = "global") -> Buffer:
    return Buffer(name, shape, DType(dtype), Scope(scope))


def loops(body: Stmt, *nest: tuple[Var, int, str]) -> Stmt:
    """Loops around *body*, the first outermost."""
    for var, extent, kind in reversed(nest):
        body = For(var, extent, ForKind(kind), body)
    return body


def program(body: Stmt, inputs: Sequence[Buffer] = (), outputs: Sequence[Buffer] = ()) -> Program:
    params = [Param(b, Role.INPUT) for b in inputs] + [Param(b, Role.OUTPUT) for b in outputs]
    return Program("test", tuple(params), body)


def lower_plainly(dag: ComputeDAG, kind: str = "serial") -> Program:
    """One nest an operator, in order; the outermost loop of each is of *kind*."""
    buffers = {
        op: Buffer(op.name, op.shape, op.dtype, _scope(dag, op)) for op in (*dag.args, *dag.ops)
    }
    body: Stmt = Seq(tuple(_nest(op, buffers, kind) for op in dag.computes))
    for op in dag.computes:
        if not dag.is_output(op):
            body = Alloc(buffers[op], body)
    params = [
        Param(buffers[op], Role.CONSTANT if op.constant else Role.INPUT) for op in dag.args
    ] + [Param(buffers[op], Role.OUTPUT) for op in dag.outputs]
    return Program("plain", tuple(params), body)


def _scope(dag: ComputeDAG, op: Tensor) -> Scope:
    outside = isinstance(op, PlaceholderOp) or dag.is_output(op)
    return Scope.GLOBAL if outside else Scope.WORKSPACE


def _nest(op: ComputeOp, buffers: dict[Tensor, Buffer], kind: str) -> Stmt:
    class Buffers(Rewriter):
        def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
            return buffers[source] if isinstance(source, Tensor) else source

    out = buffers[op]
    at: tuple[Expr, ...] = op.axes
    body: Stmt
    if isinstance(op.body, Reduce):
        value = Buffers().expr(op.body.source)
        start = const(op.body.kind.identity(op.dtype), op.dtype)
        update = _around(Store(out, at, value, op.body.kind), op.reduce_axes)
        body = Seq((Store(out, at, start, None), update))
    else:
        body = Store(out, at, Buffers().expr(op.body), None)
    return _around(body, op.axes, kind)


def _around(body: Stmt, axes: Sequence[Axis], outermost: str = "serial") -> Stmt:
    for n, axis in reversed(list(enumerate(axes))):
        body = For(axis, axis.extent, ForKind(outermost if n == 0 else "serial"), body)
    return body


def load(b: Buffer, *indices: Expr | int) -> Load:
    return Load(b, tuple(const(i) if isinstance(i, int) else i for i in indices))
