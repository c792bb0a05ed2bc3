"""What a name of an ONNX graph stands for: a tensor, a sequence of tensors, or an optional value.

Sequences and optional values exist only while a model is imported: which tensors they consist of is
known, the tensors themselves are values of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Listed", "Maybe", "Value", "leaves", "with_leaves"]


@dataclass(frozen=True)
class Listed:
    """A sequence of tensors, each the name of a graph value."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Maybe:
    """An optional value, which may have none."""

    value: str | Listed | None


Value = str | Listed | Maybe
"""A name of a graph value, or what consists of graph values."""


def leaves(value: Value) -> tuple[str, ...]:
    """The graph values that *value* consists of, in order."""
    if isinstance(value, Listed):
        return value.items
    if isinstance(value, Maybe):
        return () if value.value is None else leaves(value.value)
    return (value,)


def with_leaves(value: Value, names: Iterator[str]) -> Value:
    """*value* with the next of *names* in place of each of its graph values."""
    if isinstance(value, Listed):
        return Listed(tuple(next(names) for _ in value.items))
    if isinstance(value, Maybe):
        if value.value is None:
            return value
        held = with_leaves(value.value, names)
        assert isinstance(held, str | Listed)
        return Maybe(held)
    return next(names)
