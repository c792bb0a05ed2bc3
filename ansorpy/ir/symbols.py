"""Sizes that are not known yet: named dimensions, and symbols that stand for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ansorpy.errors import UsageError
from ansorpy.quantities import LARGEST_SIZE

__all__ = ["Dim", "SizeOp", "Symbol"]


@dataclass(frozen=True)
class Dim:
    """A dimension with a name: any multiple of *step* from *low* to *high*, both included.

    Raises:
        UsageError: The range is empty, begins below 0, ends where no int64 does, or does not begin
            and end at multiples.
    """

    name: str
    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        if not (0 <= self.low <= self.high and self.step >= 1):
            raise UsageError(f"{self.name} cannot range over {self}")
        if self.high > LARGEST_SIZE:
            raise UsageError(f"the range {self} ends beyond the largest size, {LARGEST_SIZE}")
        if self.low % self.step or self.high % self.step:
            raise UsageError(f"the ends of {self} are not multiples of {self.step}")

    def __str__(self) -> str:
        every = f":step={self.step}" if self.step > 1 else ""
        return f"{self.name}={self.low}..{self.high}{every}"


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


class Symbol:
    """A size that will be known later; subclasses define :meth:`combine`."""

    # Not an ABC: every operation on sizes asks for this class, which takes an ABC several times
    # as long to answer.

    __slots__ = ()

    def combine(self, op: SizeOp, a: Any, b: Any) -> Any:
        """``a op b``, where *a* or *b* is this symbol."""
        raise NotImplementedError

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
