"""Beam search over the decisions of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.cost.protocol import Valuing
from ansorpy.search.population import Pool, Scored
from ansorpy.search.prefix import Explored, Prefix, begin, explored
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Beam", "value_greedy"]


@dataclass
class Beam(Strategy):
    """Decides one thing after another and keeps the few best beginnings of a program.

    A beginning is worth what the model says, if it scores beginnings
    (:class:`~ansorpy.cost.protocol.Valuing`), and otherwise the best score among random programs
    that start so.  All of these are offered for measuring.  Each round begins anew, with the
    updated model.

    Paper: Halide's autoscheduler (Adams et al., SIGGRAPH 2019), Tiramisu (MLSys 2021).  Differs:
    one pass instead of five from coarse to fine, since every round is a pass; a width of 8 instead
    of 32, as each beginning costs rollouts.

    Args:
        width: Beginnings that are kept after each decision.
        rollouts: Random programs for each of them, divided among its options.
    """

    width: int = 8
    rollouts: int = 48

    def ask(self, context: Context, n: int) -> Pool:
        kept = [begin(context.source)]  # a new one, as a prefix keeps the options below it
        found: list[Scored] = []
        while True:
            groups = explored(context, kept, self.rollouts)
            found += [group.scored for group in groups]
            kept = _best_options(context, groups)[: self.width]
            if not any(prefix.options for prefix in kept):
                return context.pool(found, found, n)


def _best_options(context: Context, groups: Sequence[Explored]) -> list[Prefix]:
    """The options that *groups* take, most valuable first."""
    options = {group.option.decided: group.option for group in groups}
    values = _values(context, list(options.values()))
    if values is None:
        best = dict.fromkeys(options, float("-inf"))
        for group in groups:
            best[group.option.decided] = max(best[group.option.decided], group.best)
        values = list(best.values())
    ranked = sorted(zip(values, options, strict=True), key=lambda pair: -pair[0])
    return [options[decided] for _, decided in ranked]


def _values(context: Context, options: Sequence[Prefix]) -> list[float] | None:
    """The model's values; None if it scores whole programs only, or none of these."""
    beginnings = [option.beginning for option in options]
    known = [beginning for beginning in beginnings if beginning is not None]
    if not isinstance(context.model, Valuing) or not known or len(known) < len(beginnings):
        return None
    values = context.model.values(context.task, known)
    return None if values is None else values.tolist()


def value_greedy() -> Beam:
    """Takes the best option of one decision after another, by the model's value of each.

    Paper: "Value Learning for Throughput Optimization", MLSys 2021; with the cost model
    ``value_lstm``, which learns values from the programs measured.
    """
    return Beam(width=1, rollouts=256)
