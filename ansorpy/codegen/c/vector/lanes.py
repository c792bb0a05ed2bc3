"""The lanes of the vector loop that is being emitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.codegen.accesses import free_vars
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.rewrite.rewriter import substitute

__all__ = ["Lanes"]


@dataclass(frozen=True)
class Lanes:
    """A chunk of *width* lanes; the first *active* of them are in use.

    In lane k, a variable of the vector loop has the value
    ``starts[variable] + steps[variable][k]``.
    """

    width: int
    active: int
    starts: Mapping[Var, Expr]
    steps: Mapping[Var, tuple[int, ...]]

    def varies(self, e: Expr) -> bool:
        """True when *e* may differ between lanes."""
        return any(v in self.steps for v in free_vars(e))

    def in_lane(self, e: Expr, lane: int) -> Expr:
        """*e* in one lane; inactive lanes repeat the last active one."""
        k = min(lane, self.active - 1)
        return substitute(e, {v: start + self.steps[v][k] for v, start in self.starts.items()})
