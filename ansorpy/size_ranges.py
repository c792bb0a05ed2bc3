"""Sizes that a dimension may have, and how often calls have them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, log, sqrt
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.quantities import LARGEST_SIZE, is_whole

__all__ = [
    "AnySize", "Size", "SizeRange", "is_list", "named_dim", "named_shape",
    "shape_of", "shape_text", "size_of", "size_text",
]  # fmt: skip


@dataclass(frozen=True)
class SizeRange:
    """The multiples of *step* from *low* to *high*, and what share of the calls has each size.

    Args:
        geometric: Each doubling of the size has equally many calls; otherwise, each size has.
        calls: Observed sizes with the number of calls of each, in order; if there are any, calls of
            other sizes are possible, but not expected.

    Raises:
        UsageError: The range is empty, begins below 0, or its ends are not multiples of *step*.
    """

    low: int
    high: int
    step: int = 1
    geometric: bool = False
    calls: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.low < 0:
            raise UsageError(f"the range {self} begins below 0")
        if self.low > self.high:
            raise UsageError(
                f"the range {self} is empty", hint=f"write it as {self.high}..{self.low}"
            )
        if self.step < 1:
            raise UsageError(f"the step of {self} must be at least 1")
        if self.low % self.step or self.high % self.step:
            low, high = -(-self.low // self.step), self.high // self.step
            raise UsageError(
                f"the ends of {self} are not multiples of {self.step}",
                hint=f"the multiples inside are from {low * self.step} to {high * self.step}",
            )

    def __str__(self) -> str:
        if self.calls:
            return ",".join(f"{n}*{count}" if count > 1 else str(n) for n, count in self.calls)
        step = f":step={self.step}" if self.step > 1 else ""
        return f"{self.low}..{self.high}{step}{':geometric' if self.geometric else ''}"

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.low <= size <= self.high and size % self.step == 0

    @property
    def usual(self) -> int:
        """One size to try: the most frequent one observed, or else the one in the middle."""
        if self.calls:
            return max(self.calls, key=lambda entry: entry[1])[0]
        return self._rounded(sqrt(max(self.low, self.step) * self.high))

    def weights(self, sizes: Sequence[int]) -> tuple[float, ...]:
        """The share of all calls that each of *sizes*, which ascend, stands for.

        A call counts for the size that differs from its own by the smallest factor.

        >>> SizeRange(1, 512).weights([8, 128, 512])
        (0.0625, 0.4375, 0.5)
        >>> SizeRange(1, 32, calls=((1, 6), (32, 2))).weights([1, 8, 32])
        (0.75, 0.0, 0.25)
        """
        edges = [-inf, *(sqrt(max(a, 1) * b) for a, b in pairwise(sizes)), inf]
        below = [self._share_below(edge) for edge in edges]
        return tuple(b - a for a, b in pairwise(below))

    def _share_below(self, size: float) -> float:
        """The share of calls of less than *size*, or exactly that."""
        if self.calls:
            counts = [count for _, count in self.calls]
            reached = bisect_right([size for size, _ in self.calls], size)
            return sum(counts[:reached]) / sum(counts)
        if size < self.low:
            return 0.0
        if size >= self.high:
            return 1.0
        last = int(size) // self.step
        first, end = self.low // self.step, self.high // self.step
        if not self.geometric:
            return (last + 1 - first) / (end + 1 - first)
        return log((last + 1) / max(first, 1)) / log((end + 1) / max(first, 1))

    def _rounded(self, size: float) -> int:
        return min(max(round(size / self.step) * self.step, self.low), self.high)


Size: TypeAlias = int | SizeRange
"""The size of a dimension, or the range of its sizes."""

AnySize: TypeAlias = int | str | SizeRange | Sequence[int]
"""A :data:`Size` as users write it: also text, ``(low, high)``, ``(low, high, step)`` or a list."""

_HINT = "write 8, 1..512, 1..512:geometric, 320..1280:step=32, or 1*5,8,32 for 5 times as many of 1"
_IN_PYTHON = "give 8, (1, 512), (320, 1280, 32), [1, 8, 32] or text as of --dim"
_NUMBER = r"\d{1,18}"
_NUMBERS = rf"{_NUMBER}(?:\*{_NUMBER})?(?:,{_NUMBER}(?:\*{_NUMBER})?)*"
_RANGE = rf"{_NUMBER}\.\.{_NUMBER}(?::step={_NUMBER}|:geometric)*"


def size_of(given: AnySize, what: str) -> Size:
    """*given*, the size or the sizes of *what*, which messages name.

    Raises:
        UsageError: It is neither, or its numbers do not make a range.
        ForeignFile: Its file cannot be read, or has no sizes.
    """
    if isinstance(given, SizeRange):
        return _plain(given)
    if isinstance(given, str):
        return _parsed(given, what)
    if is_whole(given):
        return _counted(int(given), what)
    if not is_list(given) or not all(map(is_whole, given)):
        raise UsageError(f"{given!r} is not a size of {what}", hint=_IN_PYTHON)
    numbers = [int(number) for number in given]
    if not isinstance(given, tuple):
        return _observed(Counter(numbers), what)
    if len(numbers) not in (2, 3):
        raise UsageError(f"{given!r} is not a range of {what}", hint=_IN_PYTHON)
    low, high, *step = numbers
    return _plain(SizeRange(low, high, step[0] if step else 1))


def is_list(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether *given* is a list, which text and bytes are not."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray)


def named_dim(item: str) -> tuple[str, Size]:
    """``("seq", SizeRange(1, 512))`` from ``seq=1..512``: a dimension, and its size.

    Raises:
        UsageError, ForeignFile: As :func:`size_of`.
    """
    match = re.fullmatch(rf"(.+?)=(@.+|{_RANGE}|{_NUMBERS})", item)
    if match is None:
        raise UsageError(f"{item!r} is not a dimension's size", hint=f"after NAME=, {_HINT}")
    return match[1], size_of(match[2], match[1])


def shape_of(given: Sequence[AnySize], what: str) -> tuple[Size, ...]:
    """The sizes of the axes of the input *what*, whose shape is *given*.

    Raises:
        UsageError, ForeignFile: It is no list of sizes, or as :func:`size_of`.
    """
    if not is_list(given):
        raise UsageError(
            f"{given!r} is not the shape of {what}", hint="give (1, 3, 48, (64, 1280))"
        )
    return tuple(size_of(size, f"{what}[{axis}]") for axis, size in enumerate(given))


def named_shape(item: str) -> tuple[str, tuple[Size, ...]]:
    """``("x", (1, 3, SizeRange(64, 320)))`` from ``x=1x3x64..320``: an input, and its shape.

    Raises:
        UsageError: As :func:`size_of`.
    """
    axis = rf"(?:{_RANGE}|{_NUMBERS})"
    match = re.fullmatch(rf"(.+?)=({axis}(?:x{axis})*)", item)
    if match is None:
        raise UsageError(
            f"{item!r} is not an input's shape", hint="write x=1x3x224x224 or x=1x3x48x64..1280"
        )
    return match[1], shape_of(re.findall(axis, match[2]), match[1])


def size_text(given: AnySize, what: str) -> str:
    """``1..512``: the size *given* of *what*, as :func:`named_dim` reads it.

    Raises:
        UsageError, ForeignFile: As :func:`size_of`.
    """
    return str(size_of(given, what))


def shape_text(given: Sequence[AnySize], what: str) -> str:
    """``1x3x64..320``: the shape *given* of *what*, as :func:`named_shape` reads it.

    Raises:
        UsageError, ForeignFile: As :func:`size_of`.
    """
    return "x".join(map(str, shape_of(given, what)))


def _parsed(text: str, what: str) -> Size:
    if text.startswith("@"):
        return _observed(Counter(_listed(Path(text[1:]))), what)
    if re.fullmatch(_NUMBERS, text):
        calls: Counter[int] = Counter()
        for item in text.split(","):
            size, _, count = item.partition("*")
            calls[int(size)] += int(count or 1)
        return _observed(calls, what)
    if not re.fullmatch(_RANGE, text):
        raise UsageError(f"{text!r} is not a size of {what}", hint=_HINT)
    ends, *options = text.split(":")
    low, high = ends.split("..")
    steps = [int(option.partition("=")[2]) for option in options if option != "geometric"] or [1]
    if len(steps) > 1:
        raise UsageError(f"{text} has two steps", hint=_HINT)
    return _plain(SizeRange(int(low), int(high), steps[0], "geometric" in options))


def _listed(path: Path) -> list[int]:
    """The sizes in the file *path*, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").split()
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except UnicodeDecodeError:
        raise ForeignFile(f"cannot read the sizes in {path}: it is not text") from None
    wrong = [line for line in lines if not re.fullmatch(_NUMBER, line)]
    if wrong or not lines:
        said = f"{wrong[0]!r} is not one" if wrong else "it has none"
        raise ForeignFile(
            f"cannot read the sizes in {path}: {said}", hint="write one observed size a line"
        )
    return [int(line) for line in lines]


def _observed(calls: Mapping[int, int], what: str) -> Size:
    """The range of observed sizes, of which *calls* has the number of calls."""
    counted = sorted((_counted(size, what), count) for size, count in calls.items() if count)
    if not counted:
        raise UsageError(f"there is no size of {what}", hint=_IN_PYTHON)
    if len(counted) == 1:
        return counted[0][0]
    return SizeRange(counted[0][0], counted[-1][0], calls=tuple(counted))


def _plain(sizes: SizeRange) -> Size:
    return sizes.low if sizes.low == sizes.high else sizes


def _counted(number: int, what: str) -> int:
    if number < 0:
        raise UsageError(f"{what} has size {number}; no size may be negative")
    if number > LARGEST_SIZE:
        raise UsageError(f"{what} has size {number}; the largest is {LARGEST_SIZE}")
    return number
