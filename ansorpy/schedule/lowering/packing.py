"""Pack constants at bind time into the order in which the loops read them.

Source: TVM's layout rewrite (option 2); the layout has one dimension per loop, in loop
order, so the kernel's address is a plain sum of loop variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.errors import ScheduleError
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.interval import bounds as interval
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Compare, CompareOp, Expr, Load, Select, Var, as_expr, walk
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import Buffer, For, ForKind, Scope, Stmt, Store
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed

__all__ = ["Packing", "pack_stmt", "plan_packing"]


@dataclass(frozen=True)
class Packing:
    """``buffer[loops] = source[indices]``, zero where *indices* are outside the source."""

    stage: str
    tensor: str
    source: Buffer
    buffer: Buffer
    loops: tuple[tuple[Var, int], ...]
    indices: tuple[Expr, ...]


def plan_packing(
    stage: str, source: Buffer, indices: Sequence[Expr], loops: Sequence[tuple[Var, Extent]]
) -> Packing:
    """Lay out *source* by those of *loops* (outermost first) on which its *indices* depend.

    Raises:
        ScheduleError: An index is not a sum of loop variables, so no such layout exists.
    """
    used = {e for index in indices for e in walk(index) if isinstance(e, Var)}
    atoms = {atom for index in indices for atom in linear(index).terms}
    known = {var for var, _ in loops}
    if not used <= known or any(isinstance(e, Load) for atom in atoms for e in walk(atom)):
        raise ScheduleError(
            f'"{source.name}" cannot be packed for "{stage}": its index is not a sum of loops',
            stage=stage, hint="do not pack this constant",
        )  # fmt: skip
    sized = [var.name for var, extent in loops if var in used and not isinstance(extent, int)]
    if sized:
        raise ScheduleError(
            f'"{source.name}" cannot be packed for "{stage}": it is packed once, but the length of '
            f"{', '.join(sized)} depends on the call",
            stage=stage, hint="do not pack this constant",
        )  # fmt: skip
    dims = tuple((var, fixed(extent)) for var, extent in loops if var in used)
    buffer = Buffer(
        f"{source.name}@{stage}", tuple(extent for _, extent in dims), source.dtype, Scope.GLOBAL
    )
    return Packing(stage, source.name, source, buffer, dims, tuple(indices))


def pack_stmt(packing: Packing) -> Stmt:
    """The loops that fill the packed buffer; the outermost runs in parallel."""
    fresh = {var: Var(var.name) for var, _ in packing.loops}
    ranges = {fresh[var]: (0, extent - 1) for var, extent in packing.loops}
    indices = tuple(substitute(index, fresh) for index in packing.indices)
    value: Expr = Load(packing.source, indices)
    inside: list[Expr] = []
    for index, extent in zip(indices, packing.source.shape, strict=True):
        low, high = interval(index, ranges)
        if low < 0:
            inside.append(Compare(CompareOp.GE, index, as_expr(0)))
        if high >= fixed(extent):
            inside.append(Compare(CompareOp.LT, index, as_expr(extent)))
    if inside:
        value = Select(all_of(*inside), value, as_expr(0, value.dtype))
    stmt: Stmt = Store(packing.buffer, tuple(fresh[v] for v, _ in packing.loops), value, None)
    for n, (var, extent) in reversed(list(enumerate(packing.loops))):
        kind = ForKind.PARALLEL if n == 0 else ForKind.SERIAL
        stmt = For(fresh[var], extent, kind, stmt)
    return stmt
