"""Which candidate serves each size: a shortest path over the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log

from ansorpy.api.sized.candidates import SizedCandidate
from ansorpy.api.sized.task_group import MOST_SIZES

__all__ = ["cheapest_path"]

_CHANGE = log(1.02) / (2 * MOST_SIZES)
"""What another schedule must gain on average: it is more code."""

_PACKING = log(1.05)
"""What schedules with packed constants of their own must gain on average: they are more memory."""

_SMALL_BYTES = 1 << 16
"""Packed constants of this size are too small to matter."""


def cheapest_path(
    candidates: Sequence[SizedCandidate], costs: Sequence[Sequence[float]]
) -> list[int]:
    """The number of the candidate that serves each size.

    All of them read the same packed constants, unless these are small and a second copy pays.

    Args:
        costs: What each candidate costs at each size, in their order.
    """
    of_packing: dict[str, list[int]] = {}
    for number, candidate in enumerate(candidates):
        of_packing.setdefault(candidate.packing[0], []).append(number)
    alike = min(_cheapest(costs, members) for members in of_packing.values())
    freely = _cheapest(costs, range(len(candidates)))
    is_small = all(candidates[number].packing[1] <= _SMALL_BYTES for number in freely[1])
    pays = alike[0] == inf or (is_small and alike[0] - freely[0] > _PACKING)
    return freely[1] if pays else alike[1]


def _cheapest(costs: Sequence[Sequence[float]], members: Sequence[int]) -> tuple[float, list[int]]:
    """The cheapest path over the sizes through the candidates *members*, and its cost."""
    best = [(costs[n][0], [n]) for n in members]
    for size in range(1, len(costs[0])):
        best = [
            min((total + costs[n][size] + (_CHANGE if path[-1] != n else 0.0), [*path, n])
                for total, path in best)
            for n in members
        ]  # fmt: skip
    return min(best)
