"""What was used last: a mapping that forgets the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Recent"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Recent(Generic[K, V]):
    """The values put last, *most* of them at the most.

    >>> recent = Recent[str, int](2)
    >>> for name in "abac":
    ...     recent.put(name, ord(name))
    >>> recent.get("a"), recent.get("b")
    (97, None)
    """

    most: int
    _held: dict[K, V] = field(default_factory=dict, repr=False)

    def put(self, key: K, value: V) -> None:
        """Hold *value*, as the latest; the oldest goes where there are too many."""
        self._held.pop(key, None)
        self._held[key] = value
        while len(self._held) > self.most:
            del self._held[next(iter(self._held))]

    def get(self, key: K) -> V | None:
        """The value put with *key*; None when it is not held any more."""
        return self._held.get(key)
