"""Questions that passes leave open: parts of a graph where no way is clearly the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Choices"]


class Choices:
    """The questions of passes that can rewrite a part in several ways, and the answers.

    Equal parts ask one question, so all layers of a transformer are decided together.

    Args:
        decided: Question -> the way to take.  Other questions are answered with their first way.
        cache_bytes: Size of the caches next to the cores; 0 if it is not known.
    """

    def __init__(self, decided: Mapping[str, str] | None = None, cache_bytes: int = 0) -> None:
        self.decided = dict(decided or {})
        self.cache_bytes = cache_bytes
        self.asked: dict[str, tuple[str, ...]] = {}

    def way(self, question: str, ways: Sequence[str]) -> str:
        """The way to take; the first of *ways* unless another one is decided."""
        self.asked[question] = tuple(ways)
        found = self.decided.get(question, ways[0])
        if found not in ways:
            raise ValueError(f"{question} has no way {found!r}, only {', '.join(ways)}")
        return found
