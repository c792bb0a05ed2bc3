"""A mapping that keeps only the most recently added values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Recent"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Recent(Generic[K, V]):
    """The values put last, at most *most* of them.

    >>> recent = Recent[str, int](2)
    >>> for name in "abac":
    ...     recent.put(name, ord(name))
    >>> recent.get("a"), recent.get("b")
    (97, None)
    """

    most: int
    _held: dict[K, V] = field(default_factory=dict, repr=False)

    def put(self, key: K, value: V) -> None:
        """Store *value* as the latest; the oldest is dropped if there are too many."""
        self._held.pop(key, None)
        self._held[key] = value
        while len(self._held) > self.most:
            del self._held[next(iter(self._held))]

    def get(self, key: K) -> V | None:
        """Return the value put with *key*; None if it is no longer held."""
        return self._held.get(key)
