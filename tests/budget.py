"""How much tests of random cases draw: a part in ``make test``, everything when exploring.

``pytest --hypothesis-profile=explore`` explores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

__all__ = ["examples", "explores", "some"]

T = TypeVar("T")


def examples(most: int) -> settings:
    """Draws *most* examples when exploring, else an eighth of them, always the same.

    There are two at least: Hypothesis begins with the simplest one, in which nothing is random.
    """
    return settings(max_examples=most if explores() else max(2, -(-most // 8)))


def some(cases: Iterable[T], first: int = 0) -> list[T]:
    """All *cases* when exploring, else every third, from number *first* (0, 1 or 2) on."""
    return list(cases) if explores() else list(cases)[first % 3 :: 3]


def explores() -> bool:
    """Whether each run draws other examples."""
    return settings.default is not None and not settings.default.derandomize
