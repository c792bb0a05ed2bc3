"""Symbols: sizes that are not known yet, and the operations on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

__all__ = ["SizeOp", "Symbol"]


class SizeOp(Enum):
    """The operations on sizes."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "//"
    MIN = "min"
    MAX = "max"
    GCD = "gcd"
    ABOVE = ">"

    # Members are hashed for every operation that is recorded; Enum would hash their names.
    __hash__ = object.__hash__


class Symbol(ABC):
    """A size that will be known later."""

    __slots__ = ()

    @abstractmethod
    def combine(self, op: SizeOp, a: Any, b: Any) -> Any:
        """``a op b``, where *a* or *b* is this symbol."""

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value: code on sizes must not branch")

    def __add__(self, other: Any) -> Any:
        return self.combine(SizeOp.ADD, self, other)

    def __radd__(self, other: Any) -> Any:
        return self.combine(SizeOp.ADD, other, self)

    def __sub__(self, other: Any) -> Any:
        return self.combine(SizeOp.SUB, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.combine(SizeOp.SUB, other, self)

    def __mul__(self, other: Any) -> Any:
        return self.combine(SizeOp.MUL, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.combine(SizeOp.MUL, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.combine(SizeOp.FLOORDIV, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.combine(SizeOp.FLOORDIV, other, self)

    def __neg__(self) -> Any:
        return self.combine(SizeOp.SUB, 0, self)
