"""What a name of an ONNX graph stands for: a tensor, a sequence of tensors, or an optional value.

Sequences and optional values exist only while a model is imported: which tensors they consist of is
known, the tensors themselves are values of the graph.  Where the length of a sequence depends on
sizes, its tensors are the rows of one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Listed", "Maybe", "Rows", "Value", "leaves", "with_leaves"]


@dataclass(frozen=True)
class Listed:
    """A sequence of tensors, each the name of a graph value."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Maybe:
    """An optional value, which may have none."""

    value: str | Listed | Rows | None


@dataclass(frozen=True)
class Rows:
    """A sequence of the rows of a graph value: as many as its first extent says."""

    value: str


Value = str | Listed | Maybe | Rows
"""A name of a graph value, or what consists of graph values."""


def leaves(value: Value) -> tuple[str, ...]:
    """The graph values that *value* consists of, in order."""
    if isinstance(value, Listed):
        return value.items
    if isinstance(value, Maybe):
        return () if value.value is None else leaves(value.value)
    if isinstance(value, Rows):
        return (value.value,)
    return (value,)


def with_leaves(value: Value, names: Iterator[str]) -> Value:
    """*value* with the next of *names* in place of each of its graph values."""
    if isinstance(value, Listed):
        return Listed(tuple(next(names) for _ in value.items))
    if isinstance(value, Maybe):
        if value.value is None:
            return value
        held = with_leaves(value.value, names)
        assert isinstance(held, str | Listed | Rows)
        return Maybe(held)
    return Rows(next(names)) if isinstance(value, Rows) else next(names)
