"""How many cases tests run: a part in ``make test``, everything when exploring.

``pytest --hypothesis-profile=explore`` explores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

__all__ = ["examples", "explores", "pairs", "some"]

A = TypeVar("A")
B = TypeVar("B")


def examples(most: int) -> settings:
    """Draws *most* examples when exploring, else an eighth of them, always the same.

    There are two at least: Hypothesis begins with the simplest one, in which nothing is random.
    Strategies of few examples give first what is not trivial.
    """
    return settings(max_examples=most if explores() else max(2, -(-most // 8)))


def some(cases: Iterable[A]) -> list[A]:
    """All *cases* when exploring, else every third: for seeds, each of which does for the others.

    What has a name is left out for good: :func:`pairs` leaves out none.
    """
    return list(cases) if explores() else list(cases)[::3]


def pairs(cases: Iterable[A], ways: Iterable[B]) -> list[tuple[A, B]]:
    """All cases in all ways when exploring, else each of both somewhere: on diagonals.

    They are a third of all pairs, or half of them where there are two ways.
    """
    every = list(ways)
    step = 1 if explores() else min(3, len(every))
    return [(a, b) for n, a in enumerate(cases) for m, b in enumerate(every) if (n + m) % step == 0]


def explores() -> bool:
    """Whether each run draws other examples."""
    return settings.default is not None and not settings.default.derandomize
