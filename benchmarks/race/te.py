"""Our definitions in TVM's tensor expressions, so that both tune the same one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ansorpy.errors import UnsupportedModel
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    Select,
)
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["relax_module", "te_tensors"]

_BINARY: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: operator.truediv,
    BinaryOp.FLOORDIV: operator.floordiv,
    BinaryOp.FLOORMOD: operator.mod,
}
_NAMED = {
    BinaryOp.MIN: "min", BinaryOp.MAX: "max", BinaryOp.POW: "power",
    BinaryOp.AND: "all", BinaryOp.OR: "any",
}  # fmt: skip
"""Functions of ``tvm.tirx``."""
_CALLED = (
    Function.EXP, Function.LOG, Function.SQRT, Function.RSQRT, Function.TANH, Function.ERF,
    Function.ABS,
)  # fmt: skip


def te_tensors(dag: ComputeDAG, tvm: Any) -> list[Any]:
    """The placeholders of *dag* in calling order, then its outputs, as tensors of ``tvm.te``.

    Raises:
        UnsupportedModel: It has an expression that no benchmark has.
    """
    made: dict[Any, Any] = {}
    for given in dag.args:
        made[given] = tvm.te.placeholder(given.shape, dtype=given.dtype.value, name=given.name)
    for op in dag.computes:
        made[op] = _compute(op, made, tvm)
    return [made[op] for op in (*dag.args, *dag.outputs)]


def relax_module(dag: ComputeDAG, tvm: Any) -> Any:
    """*dag* as a network of Relax, an operator for each stage; TVM then fuses as it does in others.

    Raises:
        UnsupportedModel: It has an expression that no benchmark has.
    """
    relax = tvm.relax
    made: dict[Tensor, Any] = {
        given: relax.Var(given.name, relax.TensorType(given.shape, given.dtype.value))
        for given in dag.args
    }
    builder = relax.BlockBuilder()
    with builder.function("main", list(made.values())):
        with builder.dataflow():
            for op in dag.computes:
                sources = tuple(dag.reads(op))
                stage = partial(_stage, op, sources, tvm)
                given = (made[source] for source in sources)
                made[op] = builder.emit_te(stage, *given, primfunc_name_hint=op.name)
            results = [builder.emit_output(made[op]) for op in dag.outputs]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return builder.get()


def _stage(op: ComputeOp, sources: Sequence[Tensor], tvm: Any, *given: Any) -> Any:
    """*op* of the tensors *given*, which are those of *sources*."""
    return _compute(op, dict(zip(sources, given, strict=True)), tvm)


def _compute(op: ComputeOp, made: Mapping[Any, Any], tvm: Any) -> Any:
    reduced = {
        axis: tvm.te.reduce_axis((0, axis.extent), name=axis.name) for axis in op.reduce_axes
    }

    def body(*index: Any) -> Any:
        axes = {**dict(zip(op.axes, index, strict=True)), **reduced}
        return _Translator(axes, made, tvm).of(op.body)

    return tvm.te.compute(op.shape, body, name=op.name)


class _Translator:
    """Expressions of one stage, whose axes are *axes*."""

    def __init__(self, axes: Mapping[Axis, Any], made: Mapping[Any, Any], tvm: Any) -> None:
        self._axes, self._made = axes, made
        self._te, self._scalar = tvm.te, tvm.tirx
        self._kinds: Mapping[type[Expr], Callable[[Any], Any]] = {
            Const: lambda c: self._scalar.const(c.value, _index_type(c.dtype.value)),
            Axis: lambda axis: self._axes[axis],
            Binary: self._binary,
            Compare: lambda c: _COMPARE[c.op.value](self.of(c.a), self.of(c.b)),
            Call: self._call,
            Select: lambda s: self._scalar.if_then_else(*map(self.of, (s.cond, s.then, s.other))),
            Cast: lambda c: self.of(c.x).astype(_index_type(c.type.value)),
            Load: lambda load: self._made[load.source](*map(self.of, load.indices)),
            Reduce: self._reduce,
        }

    def of(self, e: Expr) -> Any:
        if type(e) not in self._kinds:
            raise UnsupportedModel(f"TVM gets no {type(e).__name__}")
        return self._kinds[type(e)](e)

    def _binary(self, e: Binary) -> Any:
        a, b = self.of(e.a), self.of(e.b)
        if e.op in _BINARY:
            return _BINARY[e.op](a, b)
        if e.op not in _NAMED:
            raise UnsupportedModel(f"TVM gets no {e.op.value}")
        return getattr(self._scalar, _NAMED[e.op])(a, b)

    def _call(self, e: Call) -> Any:
        if e.fn is Function.NEG:
            return -self.of(e.args[0])
        if e.fn not in _CALLED:
            raise UnsupportedModel(f"TVM gets no {e.fn.value}")
        return getattr(self._scalar, e.fn.value)(*map(self.of, e.args))

    def _reduce(self, e: Reduce) -> Any:
        axes = [self._axes[axis] for axis in e.axes]
        return getattr(self._te, e.kind.value)(self.of(e.source), axis=axes)


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _index_type(name: str) -> str:
    """TVM's indices are 32 bits wide."""
    return "int32" if name == "int64" else name
