"""Declared hardware instructions: a small compute pattern each, and nothing else.

An :class:`~ansorpy.ir.loops.Instruction` statement means what its pattern says, so interpreters
and generators without the instruction run :func:`expand`, the pattern as loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, Reduce, Var, walk
from ansorpy.ir.loops import Buffer, For, ForKind, Instruction, Stmt, Store
from ansorpy.ir.rewrite import Rewriter, substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis

__all__ = ["Intrinsic", "declare", "expand", "intrinsic", "operand_tensors"]

_Operands = Mapping[Tensor, tuple[Buffer, tuple[Expr, ...]]]


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """``pattern`` over its axes is one execution; a reduction adds to what the output holds."""

    name: str
    pattern: ComputeOp


_DECLARED: dict[str, Intrinsic] = {}


def declare(instruction: Intrinsic) -> Intrinsic:
    """Make *instruction* known by its name; returns it.

    Raises:
        UsageError: Another instruction has that name.
    """
    if _DECLARED.setdefault(instruction.name, instruction) is not instruction:
        raise UsageError(f'an instruction named "{instruction.name}" is declared already')
    return instruction


def intrinsic(name: str) -> Intrinsic:
    """The instruction declared as *name*.

    Raises:
        UsageError: There is none; the hint lists those there are.
    """
    found = _DECLARED.get(name)
    if found is None:
        raise UsageError(
            f'there is no instruction "{name}"',
            hint=f"declared are {', '.join(_DECLARED)}; declare() adds one",
        )
    return found


def operand_tensors(pattern: ComputeOp) -> tuple[Tensor, ...]:
    """The tensors of *pattern* in the order an instruction lists them: output, then inputs."""
    found: dict[Tensor, None] = {pattern: None}
    for e in walk(pattern.body):
        if isinstance(e, Load) and isinstance(e.source, Tensor):
            found.setdefault(e.source)
    return tuple(found)


def expand(stmt: Instruction) -> Stmt:
    """The pattern of *stmt* as serial loops on its operands.

    Raises:
        UsageError: No instruction of that name is declared.
        LoweringError: The operands are not the pattern's: another number, type or rank.
    """
    pattern = intrinsic(stmt.name).pattern
    axes = (*pattern.axes, *pattern.reduce_axes)
    variables: dict[Var, Var] = {axis: Var(axis.name) for axis in axes}
    operands = _operands(stmt, pattern)
    body = pattern.body
    kind, source = (body.kind, body.source) if isinstance(body, Reduce) else (None, body)
    value = _OnOperands(operands).expr(substitute(source, variables))
    buffer, base = operands[pattern]
    written = _shifted(base, tuple(variables[axis] for axis in pattern.axes))
    nest: Stmt = Store(buffer, written, value, kind)
    for axis in reversed(axes):
        nest = For(variables[axis], axis.extent, ForKind.SERIAL, nest)
    return nest


def _operands(stmt: Instruction, pattern: ComputeOp) -> _Operands:
    tensors = operand_tensors(pattern)
    if len(stmt.operands) != len(tensors):
        raise LoweringError(
            f"{stmt.name} takes {len(tensors)} operands, got {len(stmt.operands)}",
            hint=f"they are {', '.join(tensor.name for tensor in tensors)}",
        )
    for tensor, (buffer, base) in zip(tensors, stmt.operands, strict=True):
        if buffer.dtype is not tensor.dtype or len(base) < tensor.ndim:
            raise LoweringError(
                f"{buffer.name}, {buffer.dtype.value} of {len(base)} dimensions, cannot be "
                f"operand {tensor.name} of {stmt.name}",
                hint=f"it is {tensor.dtype.value} and has {tensor.ndim} dimensions",
            )
    return dict(zip(tensors, stmt.operands, strict=True))


class _OnOperands(Rewriter):
    """Reads the operands of one instruction instead of the pattern's placeholders."""

    def __init__(self, operands: _Operands):
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


declare(Intrinsic("vnni.dot_16x4", _dot_16x4()))
