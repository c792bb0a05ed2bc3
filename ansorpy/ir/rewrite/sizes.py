"""Definitions and programs at chosen sizes: dimensions replaced by numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Binary, Const, Expr, Reduce, SizeVar, as_expr
from ansorpy.ir.extents import Extent, most
from ansorpy.ir.loops import Buffer, For, Param, Program, Seq, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.sizes import Sizes, at
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["dag_at", "program_at"]


def dag_at(dag: ComputeDAG, sizes: Sizes) -> ComputeDAG:
    """*dag* where the dimensions in *sizes* have these sizes; *dag* itself if it has none of them.

    >>> from ansorpy.ir.extents import dim
    >>> from ansorpy.ir.tensor import compute, placeholder
    >>> n = dim("n", 1, 512)
    >>> x = placeholder((n, 4), name="x")
    >>> dag = ComputeDAG([compute((n * 4,), lambda i: x[i // 4, i % 4], name="y")])
    >>> dag_at(dag, {dag.dims[0]: 37}).outputs[0].shape
    (148,)
    """
    if not set(dag.dims) & sizes.keys():
        return dag
    made: dict[Tensor, Tensor] = {}
    for op in (*dag.args, *dag.ops):
        if op not in made:
            made[op] = _tensor_at(op, sizes, made)
    args = [_placeholder(made[op]) for op in dag.args]
    strides = {name: _all_at(steps, sizes) for name, steps in dag.strides.items()}
    return ComputeDAG([made[op] for op in dag.outputs], args, strides)


def _tensor_at(op: Tensor, sizes: Sizes, made: Mapping[Tensor, Tensor]) -> Tensor:
    shape = _all_at(op.shape, sizes)
    if isinstance(op, PlaceholderOp):
        return PlaceholderOp(op.name, shape, op.dtype, op.constant)
    assert isinstance(op, ComputeOp)
    axes = {a: Axis(a.name, at(a.extent, sizes), a.kind) for a in (*op.axes, *op.reduce_axes)}
    body = _DefinitionAt(sizes, made, axes).expr(op.body)
    space, reduced = (tuple(axes[a] for a in own) for own in (op.axes, op.reduce_axes))
    return ComputeOp(op.name, shape, space, reduced, body, op.attrs, op.routine)


def _placeholder(op: Tensor) -> PlaceholderOp:
    assert isinstance(op, PlaceholderOp)
    return op


def program_at(program: Program, sizes: Sizes) -> Program:
    """*program* where the dimensions in *sizes* have these sizes.

    Loops that then have no iterations are left out.  The result computes what a call of *program*
    with these sizes computes.
    """
    rewriter = _ProgramAt(sizes)
    params = tuple(Param(rewriter.buffer(p.buffer), p.role) for p in program.params)
    return Program(program.name, params, rewriter.stmt(program.body))


def _all_at(extents: Iterable[Extent], sizes: Sizes) -> tuple[Extent, ...]:
    return tuple(at(extent, sizes) for extent in extents)


class _AtSizes(Rewriter):
    """Replaces the variables of dimensions, and folds the numbers that this leaves."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes

    def leave(self, e: Expr) -> Expr:
        match e:
            case SizeVar():
                return as_expr(self.sizes[e.dim]) if e.dim in self.sizes else e
            case Binary(_, Const(), Const()) if e.dtype is DType.INT64:
                return simplify(e)
        return e


class _DefinitionAt(_AtSizes):
    def __init__(self, sizes: Sizes, made: Mapping[Tensor, Tensor], axes: Mapping[Axis, Axis]):
        super().__init__(sizes)
        self.made, self.axes = made, axes

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Axis):
            return self.axes[e]
        if isinstance(e, Reduce):
            return Reduce(e.kind, e.source, tuple(self.axes[a] for a in e.axes))
        return super().leave(e)

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        assert isinstance(source, Tensor)
        return self.made[source]


class _ProgramAt(_AtSizes):
    def __init__(self, sizes: Sizes):
        super().__init__(sizes)
        self._buffers: dict[Buffer, Buffer] = {}

    def buffer(self, b: Buffer) -> Buffer:
        if b not in self._buffers:
            strides = None if b.strides is None else _all_at(b.strides, self.sizes)
            shape = _all_at(b.shape, self.sizes)
            self._buffers[b] = replace(b, shape=shape, strides=strides)
        return self._buffers[b]

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        assert isinstance(source, Buffer)
        return self.buffer(source)

    def stmt(self, s: Stmt) -> Stmt:
        if not isinstance(s, For):
            return super().stmt(s)
        extent = at(s.extent, self.sizes)
        return For(s.var, extent, s.kind, self.stmt(s.body)) if most(extent) > 0 else Seq(())
