"""Sums of 16-bit floats, which are added in float32.

A stage's own buffer is float32 if only one thread sees it; otherwise its sums get a buffer::

    alloc C.sums: float32[4]
    for j: C.sums[j] = 0
    for k: for j: C.sums[j] += A[k] * B[k, j]
    for j: C[j] = float16(C.sums[j])

A sum of thousands of float16 values that is rounded after each addition may be off by a tenth.
What a stage computes is rounded: the parts of a sum that is divided among stages, too.

Two orders of loops have no such buffer, and may add in 16 bits.  Threads bound inside the reduction
of a stage in shared memory add to it in place.  So do lanes around the reduction, unless their sums
fit into registers: at most twice those of the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, Reduce, ReduceKind, as_expr
from ansorpy.ir.loops import Buffer, Scope, Store
from ansorpy.schedule.lowering.context import Index
from ansorpy.schedule.stage import Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Float32Sums", "adds_halves"]

_ROUNDING = (ReduceKind.SUM, ReduceKind.PROD)


def adds_halves(state: State, stage: Stage) -> bool:
    """Whether *stage* adds up (or multiplies) 16-bit floats in its own loops.

    Instructions and the sums of attention are float32 by themselves.
    """
    body = None if stage.is_placeholder else stage.compute.body
    if not isinstance(body, Reduce) or body.kind not in _ROUNDING:
        return False
    carries = any(s.carried is not None and s.carried.host == stage.name for s in state.stages)
    apart = stage.tensorized or stage.carried or stage.rescaled
    return body.dtype.of_sums is not body.dtype and not apart and not carries


@dataclass(frozen=True)
class Float32Sums:
    """One stage's sums, ``buffer[space loops inside the reduction...]``."""

    buffer: Buffer
    kind: ReduceKind

    @staticmethod
    def of(
        name: str, dtype: DType, shape: tuple[int, ...], kind: ReduceKind, *, shared: bool
    ) -> Float32Sums:
        """Sums of *dtype* for one stage; *shared* if its elements are divided among threads."""
        scope = Scope.WORKSPACE if shared else Scope.LOCAL
        return Float32Sums(Buffer(f"{name}.sums", shape or (1,), dtype.of_sums, scope), kind)

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
