"""Sums of 16-bit floats, which are added in float32 and rounded once, whatever the loops' order.

::

    alloc C.sums: float32[4]
    for j: C.sums[j] = 0
    for k: for j: C.sums[j] += A[k] * B[k, j]
    for j: C[j] = float16(C.sums[j])

A sum of thousands of float16 values that is rounded after each addition may be off by a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, ReduceKind, as_expr
from ansorpy.ir.loops import Buffer, Scope, Store

__all__ = ["WideSums"]

Index = tuple[Expr, ...]


@dataclass(frozen=True)
class WideSums:
    """One stage's sums, ``buffer[space loops inside the reduction...]``."""

    buffer: Buffer
    kind: ReduceKind

    @staticmethod
    def of(
        name: str, dtype: DType, shape: tuple[int, ...], kind: ReduceKind, *, shared: bool
    ) -> WideSums:
        """Sums of *dtype* for one stage; *shared* if its elements are divided among threads."""
        scope = Scope.WORKSPACE if shared else Scope.LOCAL
        return WideSums(Buffer(f"{name}.sums", shape or (1,), dtype.of_sums, scope), kind)

    def cleared(self, at: Index) -> Store:
        """Set the sum at *at* to the identity."""
        identity = as_expr(self.kind.identity(self.buffer.dtype), self.buffer.dtype)
        return Store(self.buffer, self._place(at), identity, None)

    def added(self, at: Index, value: Expr) -> Store:
        """Add *value* to the sum at *at*."""
        return Store(self.buffer, self._place(at), value.astype(self.buffer.dtype), self.kind)

    def rounded(self, at: Index, target: Buffer, index: Index) -> Store:
        """Store the sum at *at* in *target*."""
        return Store(target, index, Load(self.buffer, self._place(at)).astype(target.dtype), None)

    def _place(self, at: Index) -> Index:
        return at or (as_expr(0),)
