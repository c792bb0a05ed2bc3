"""Beam search over the decisions of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool, Scored, top
from ansorpy.search.prefix import Prefix, begin
from ansorpy.search.rollouts import explored
from ansorpy.search.strategy import Context

__all__ = ["Beam", "value_greedy"]


@dataclass
class Beam:
    """Decides one thing after another and keeps the few best beginnings of a program.

    A beginning is worth the best score among random programs that start so; all of these are
    offered for measuring.  Each round begins anew, with the updated model.

    Paper: Halide's autoscheduler (Adams et al., SIGGRAPH 2019), Tiramisu (MLSys 2021).  Differs:
    programs that are complete are scored, and not beginnings, whose features would need values for
    what is still open; one pass instead of five from coarse to fine, since every round is a pass.

    Args:
        width: Beginnings that are kept after each decision.
        rollouts: Random programs for each of them, divided among its options.
    """

    width: int = 8
    rollouts: int = 48
    _start: Prefix | None = field(default=None, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        self._start = self._start or begin(context.source)
        kept: list[Prefix] = [self._start]
        found: list[Scored] = []
        while any(prefix.options for prefix in kept):
            groups = explored(context, kept, self.rollouts)
            found += [group.scored for group in groups]
            ranked = sorted(groups, key=lambda group: -group.best)
            kept = list({g.option.decided: g.option for g in ranked}.values())[: self.width]
        best = top(found, 2 * n, context.measured)
        everyone = [c for g in found for c in g.candidates() if c.key not in context.measured]
        order = context.rng.permutation(len(everyone))[: 2 * n]
        return Pool(tuple(best), tuple(everyone[at] for at in order))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        """Do nothing: results affect the search only through the model."""


def value_greedy() -> Beam:
    """Takes the best option of one decision after another, by the model's value of each."""
    return Beam(width=1, rollouts=256)
