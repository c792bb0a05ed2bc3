"""Declared hardware instructions: a small compute pattern each, and nothing else.

An :class:`~ansorpy.ir.loops.Instruction` statement means what its pattern says, so interpreters
and generators without the instruction run :func:`expand`, the pattern as loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.errors import ScheduleError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, Reduce, Var, walk
from ansorpy.ir.loops import Buffer, For, ForKind, Instruction, Stmt, Store
from ansorpy.ir.rewrite import Rewriter, substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis

__all__ = ["INTRINSICS", "Intrinsic", "expand", "intrinsic", "operand_tensors"]


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """``pattern`` over its axes is one execution; a reduction adds to what the output holds."""

    name: str
    pattern: ComputeOp


def _dot_16x4() -> ComputeOp:
    """AVX-512 VNNI ``vpdpbusd``: 16 int32 sums of 4 products of uint8 and int8."""
    a = placeholder((4,), DType.UINT8, name="a")
    b = placeholder((16, 4), DType.INT8, name="b")
    k = reduce_axis(4, name="k")
    return compute(
        (16,),
        lambda i: sum_over(a[k].astype(DType.INT32) * b[i, k].astype(DType.INT32), axis=k),
        name="dot_16x4",
    )


INTRINSICS: Mapping[str, Intrinsic] = {
    "vnni.dot_16x4": Intrinsic("vnni.dot_16x4", _dot_16x4()),
}


def intrinsic(name: str) -> Intrinsic:
    """The declared instruction *name*; raises :class:`ScheduleError` with those there are."""
    if name not in INTRINSICS:
        raise ScheduleError(
            f'there is no instruction "{name}"', hint=f"declared are {', '.join(INTRINSICS)}"
        )
    return INTRINSICS[name]


def operand_tensors(pattern: ComputeOp) -> tuple[Tensor, ...]:
    """The tensors of *pattern* in the order an instruction lists them: output, then inputs."""
    found: list[Tensor] = [pattern]
    for e in walk(pattern.body):
        if isinstance(e, Load) and isinstance(e.source, Tensor) and e.source not in found:
            found.append(e.source)
    return tuple(found)


def expand(stmt: Instruction) -> Stmt:
    """The pattern of *stmt* as serial loops on its operands."""
    pattern = intrinsic(stmt.name).pattern
    variables: dict[Var, Expr] = {
        axis: Var(axis.name) for axis in (*pattern.axes, *pattern.reduce_axes)
    }
    operands = dict(zip(operand_tensors(pattern), stmt.operands, strict=True))
    body = pattern.body
    source = body.source if isinstance(body, Reduce) else body
    value = _OnOperands(operands).expr(substitute(source, variables))
    buffer, base = operands[pattern]
    inner: Stmt = Store(
        buffer, _shifted(base, tuple(variables[a] for a in pattern.axes)), value,
        body.kind if isinstance(body, Reduce) else None,
    )  # fmt: skip
    for axis in reversed((*pattern.axes, *pattern.reduce_axes)):
        var = variables[axis]
        assert isinstance(var, Var)
        inner = For(var, axis.extent, ForKind.SERIAL, inner)
    return inner


class _OnOperands(Rewriter):
    """Reads the operands of one instruction instead of the pattern's placeholders."""

    def __init__(self, operands: Mapping[Tensor, tuple[Buffer, tuple[Expr, ...]]]):
        super().__init__()
        self.operands = operands

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.source, Tensor):
            buffer, base = self.operands[e.source]
            return Load(buffer, _shifted(base, e.indices))
        return e


def _shifted(base: tuple[Expr, ...], local: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """*base* with *local* added to its last dimensions."""
    lead = len(base) - len(local)
    return (*base[:lead], *(b + i for b, i in zip(base[lead:], local, strict=True)))
