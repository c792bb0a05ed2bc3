"""Replace the innermost loops of a stage by a declared instruction.

The loops and the statement must match the instruction's pattern: they must have the same extents
and the same expression, and operands must move through the last dimensions of their buffers as
those of the pattern do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.errors import ScheduleError
from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    Load,
    Reduce,
    Var,
    as_expr,
    children,
)
from ansorpy.ir.intrinsics import intrinsic, operand_dims, operand_tensors
from ansorpy.ir.loops import Buffer, Instruction, Store
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["as_instruction"]

Operand = tuple[Buffer, tuple[Expr, ...]]


def as_instruction(
    name: str, store: Store, space: Sequence[tuple[Var, int]], reduce: Sequence[tuple[Var, int]]
) -> Instruction:
    """The instruction *name* in place of loops *space* and *reduce* around *store*.

    Raises:
        UsageError: There is no such instruction.
        ScheduleError: The loops or the statement do not match the instruction's pattern.
    """
    pattern = intrinsic(name).pattern
    axes = (*pattern.axes, *pattern.reduce_axes)
    loops = (*space, *reduce)
    found, wanted = [extent for _, extent in loops], [axis.extent for axis in axes]
    if found != wanted or len(space) != len(pattern.axes):
        raise _mismatch(name, f"its loops run over {wanted}, but these run over {found}")
    match = _Match(name, {var: axis for (var, _), axis in zip(loops, axes, strict=True)})
    body = pattern.body
    kind = body.kind if isinstance(body, Reduce) else None
    if store.reduce is not kind:
        raise _mismatch(name, "the reductions differ")
    match.operand(pattern, pattern.axes, store.buffer, store.indices)
    match.expressions(body.source if isinstance(body, Reduce) else body, store.value)
    return Instruction(name, tuple(match.operands[t] for t in operand_tensors(pattern)))


class _Match:
    def __init__(self, name: str, axis_of: Mapping[Var, Var]):
        self.name = name
        self.axis_of = axis_of
        self.zeros: dict[Var, Expr] = {var: as_expr(0) for var in axis_of}
        declared = intrinsic(name)
        tensors = operand_tensors(declared.pattern) if declared.fragments else ()
        self.fragments = dict(zip(tensors, declared.fragments, strict=True))
        self.operands: dict[Tensor, Operand] = {}
        self.starts: dict[Tensor, tuple[Linear, ...]] = {}

    def expressions(self, pattern: Expr, found: Expr) -> None:
        """Pair the loads of two expressions that must otherwise be the same."""
        if isinstance(pattern, Load) and isinstance(found, Load):
            assert isinstance(pattern.source, Tensor) and isinstance(found.source, Buffer)
            self.operand(pattern.source, pattern.indices, found.source, found.indices)
            return
        ours, theirs = children(pattern), children(found)
        alike = _head(pattern) == _head(found) and len(ours) == len(theirs)
        if not alike or (not ours and not same_structure(pattern, found)):
            raise _mismatch(self.name, "the statement computes something else")
        for a, b in zip(ours, theirs, strict=True):
            self.expressions(a, b)

    def operand(
        self, tensor: Tensor, wanted: Sequence[Expr], buffer: Buffer, found: Sequence[Expr]
    ) -> None:
        """Check that operand *tensor* matches *buffer*, and record its start there."""
        dims = operand_dims(buffer, tensor) if len(found) >= len(wanted) else ()
        alike = len(dims) == len(wanted) and tensor.dtype is buffer.dtype
        if not alike or not self._laid_out(tensor, buffer):
            raise _mismatch(self.name, f'"{buffer.name}" is not laid out like "{tensor.name}"')
        for d, index in enumerate(found):
            if d not in dims and set(linear(index).terms) & set(self.axis_of):
                raise _mismatch(self.name, f'"{buffer.name}" moves in an outer dimension')
        for ours, theirs in zip(wanted, (found[d] for d in dims), strict=True):
            moves = linear(theirs).terms
            terms = {axis: moves[var] for var, axis in self.axis_of.items() if var in moves}
            if terms != dict(linear(ours).terms):
                raise _mismatch(self.name, f'"{buffer.name}" is read in another order')
        starts = tuple(linear(substitute(i, self.zeros)) for i in found)
        known, _ = self.operands.get(tensor, (buffer, ()))
        if known is not buffer or self.starts.setdefault(tensor, starts) != starts:
            raise _mismatch(self.name, f'"{tensor.name}" would be two different operands')
        self.operands[tensor] = (buffer, tuple(start.to_expr() for start in starts))

    def _laid_out(self, tensor: Tensor, buffer: Buffer) -> bool:
        """Whether *buffer* is laid out as *tensor* must be.

        For a team, lanes must hold the instruction's fragments.  For one thread, the pattern's
        rows (all but the first dimension) must be rows of the buffer.
        """
        if self.fragments:
            wanted = self.fragments[tensor]
            return tuple(filter(None, buffer.fragment or ())) == wanted
        if isinstance(tensor, ComputeOp) or len(tensor.shape) < 2:
            return True
        return tensor.shape[1:] == buffer.shape[len(buffer.shape) - len(tensor.shape) + 1 :]


def _head(e: Expr) -> tuple[object, ...]:
    """The kind of an expression, without its operands."""
    match e:
        case Binary(op, _, _) | Compare(op, _, _):
            return type(e), op
        case Call(fn, _):
            return Call, fn
        case Cast(to, _):
            return Cast, to
        case _:
            return (type(e),)


def _mismatch(name: str, reason: str) -> ScheduleError:
    return ScheduleError(
        f"these loops are not instruction {name}: {reason}",
        hint="split and reorder so that the innermost loops are the instruction's",
    )
