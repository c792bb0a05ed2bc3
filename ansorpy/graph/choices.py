"""Questions that passes leave open: how to rewrite a part where no way is clearly the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

__all__ = ["Choices", "UnknownWay"]

T = TypeVar("T")


class UnknownWay(ValueError):
    """A decision names a way in which the graph cannot be rewritten."""


class Choices:
    """The questions of passes that can rewrite a part in several ways, and the answers.

    Equal parts ask one question, so all layers of a transformer are decided together.  A part that
    asks the same, but has other ways, gets a number after its question.

    Args:
        decided: Question -> the way to take.  Other questions are answered with their first way.
        cache_bytes: Size of the caches next to the cores; 0 if it is not known.
    """

    def __init__(self, decided: Mapping[str, str] | None = None, cache_bytes: int = 0) -> None:
        self.decided = dict(decided or {})
        self.cache_bytes = cache_bytes
        self.asked: dict[str, Mapping[str, object]] = {}

    def way(self, question: str, ways: Mapping[str, T]) -> T:
        """The value of the way to take: the first of *ways* unless another one is decided.

        Args:
            ways: Name -> what the way does to the graph.  Earlier answers may change the graph, so
                ways of the same name may differ in this value.  The first name must not depend on
                earlier answers.

        Raises:
            UnknownWay: The decided way is not among *ways*.
        """
        asked, number = question, 1
        while self.asked.get(asked, ways).keys() != ways.keys():
            number += 1
            asked = f"{question} ({number})"
        self.asked[asked] = ways
        name = self.decided.get(asked, next(iter(ways)))
        if name not in ways:
            raise UnknownWay(f"{asked} has no way {name!r}, only {', '.join(ways)}")
        return ways[name]
