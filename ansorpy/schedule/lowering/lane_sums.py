"""Partial sums in the lanes of a vector: their buffer, initialisation and tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, ReduceKind, Var, as_expr
from ansorpy.ir.loops import Buffer, For, ForKind, Scope, Seq, Stmt, Store
from ansorpy.ir.sizes import fixed
from ansorpy.schedule.lowering.context import Index

__all__ = ["LaneSums"]


@dataclass(frozen=True)
class LaneSums:
    """One stage's partial sums, ``buffer[space loops inside the reduction..., lane]``.

    Half-width floats are summed in single precision, as in other sums.
    """

    buffer: Buffer
    kind: ReduceKind

    @staticmethod
    def of(
        name: str, dtype: DType, shape: tuple[int, ...], kind: ReduceKind, *, shared: bool
    ) -> LaneSums:
        """Sums of *dtype* (or wider) for one stage; the last extent of *shape* counts lanes.

        The sums are *shared* if the elements inside the reduction are divided among threads.
        """
        scope = Scope.WORKSPACE if shared else Scope.LOCAL
        return LaneSums(Buffer(f"{name}.lanes", shape, dtype.of_sums, scope), kind)

    @property
    def lanes(self) -> int:
        return fixed(self.buffer.shape[-1])

    def cleared(self, at: Index, fresh: Callable[[str], Var]) -> Stmt:
        """Set the lanes of element *at* to the identity."""
        identity = as_expr(self.kind.identity(self.buffer.dtype), self.buffer.dtype)
        lane = fresh("lane")
        store = Store(self.buffer, (*at, lane), identity, None)
        return For(lane, self.lanes, ForKind.VECTORIZED, store)

    def added(self, at: Index, value: Expr) -> Store:
        """Add *value* to the sum at *at*, whose last index is the lane."""
        return Store(self.buffer, at, value.astype(self.buffer.dtype), self.kind)

    def combined(
        self, at: Index, target: Buffer, index: Index, fresh: Callable[[str], Var]
    ) -> Stmt:
        """Add the upper lanes to the lower ones until one is left, and store it in *target*.

        Each step leaves a power of two lanes, so that later steps halve whole vectors.
        """
        steps: list[Stmt] = []
        left = self.lanes
        while left > 1:
            kept, lane = 1 << (left - 1).bit_length() - 1, fresh("lane")
            upper = Load(self.buffer, (*at, lane + kept))
            step = Store(self.buffer, (*at, lane), upper, self.kind)
            steps.append(For(lane, left - kept, ForKind.VECTORIZED, step))
            left = kept
        total = Load(self.buffer, (*at, as_expr(0))).astype(target.dtype)
        return Seq((*steps, Store(target, index, total, None)))
