"""Questions that passes leave open: parts of a graph where no way is better on its face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Choices"]


class Choices:
    """What a pass asks where it could rewrite a part in several ways, and what is decided.

    Equal parts ask one question, so all layers of a transformer are decided together.

    Args:
        decided: Question -> the way to take.  What is not in it is answered with the first way.
        cache_bytes: What the caches next to the cores hold; 0 where that is not known.
    """

    def __init__(self, decided: Mapping[str, str] | None = None, cache_bytes: int = 0) -> None:
        self.decided = dict(decided or {})
        self.cache_bytes = cache_bytes
        self.asked: dict[str, tuple[str, ...]] = {}

    def way(self, question: str, ways: Sequence[str]) -> str:
        """The way to take; the first of *ways* unless something else is decided."""
        self.asked[question] = tuple(ways)
        found = self.decided.get(question, ways[0])
        if found not in ways:
            raise ValueError(f"{question} has no way {found!r}, only {', '.join(ways)}")
        return found
