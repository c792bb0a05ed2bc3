"""Sizes as formulas over a table's columns: recorded once per placed sketch, run on every table.

Code that computes sizes runs on symbols, which record each operation.  Equal operations share one
number, so that common subexpressions are computed once.  Each formula records the columns on which
it depends, so that it can be evaluated only for their distinct settings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ansorpy.ir.symbols import SizeOp, Symbol
from ansorpy.schedule.tables.bounded import Bounded, bounded
from ansorpy.schedule.tables.size import Column, Size

__all__ = ["Formula", "Formulas", "Tape", "symbols_of"]

Ints = npt.NDArray[np.int64]


class Formula(Symbol):
    """Formula *number* of *formulas*; ``columns`` has a bit for every column it depends on."""

    __slots__ = ("columns", "formulas", "number")

    def __init__(self, formulas: Formulas, number: int, columns: int):
        self.formulas = formulas
        self.number = number
        self.columns = columns

    def combine(self, op: SizeOp, a: Size, b: Size) -> Size:
        return self.formulas.record(op, a, b)

    def __repr__(self) -> str:
        return f"Formula({self.number})"


class _Operation(NamedTuple):
    """An operation on formulas *a* and *b*; no later operation uses the values *last*."""

    op: SizeOp
    a: int
    b: int
    last: tuple[int, ...] = ()


class Formulas:
    """Formulas over the columns of one table layout.

    *fixed* maps each column that has the same number in every row to that number, which formulas
    then use in its place.
    """

    def __init__(self, columns: Sequence[str], fixed: Mapping[str, int]):
        self._width = len(columns)
        self._recorded: list[_Operation | int] = [0] * self._width
        self._known: dict[SizeOp, dict[tuple[Size, Size], Size]] = {op: {} for op in SizeOp}
        self._constants: dict[int, int] = {}
        self.values: dict[str, Size] = {
            name: fixed.get(name, Formula(self, at, 1 << at)) for at, name in enumerate(columns)
        }

    def record(self, op: SizeOp, a: Size, b: Size) -> Size:
        """The formula ``a op b``."""
        known = self._known[op]
        found = known.get((a, b))
        if found is None:
            found = _simplified(op, a, b)
            known[a, b] = found = self._new(op, a, b) if found is None else found
        return found

    def _new(self, op: SizeOp, a: Size, b: Size) -> Formula:
        parts = [x.columns for x in (a, b) if isinstance(x, Formula)]
        operation = _Operation(op, self._number(a), self._number(b))
        found = Formula(self, len(self._recorded), parts[0] | parts[-1])
        self._recorded.append(operation)
        return found

    def _number(self, size: Size) -> int:
        if isinstance(size, Formula):
            return size.number
        if not isinstance(size, int):
            raise TypeError("columns and symbols do not mix")
        if size not in self._constants:
            self._constants[size] = len(self._recorded)
            self._recorded.append(size)
        return self._constants[size]

    def program(self, wanted: Iterable[Formula]) -> Tape:
        """The program that computes the formulas *wanted*."""
        roots, recorded = tuple(dict.fromkeys(wanted)), self._recorded
        end = 1 + max((f.number for f in roots), default=-1)
        needed = bytearray(end)
        for formula in roots:
            needed[formula.number] = 1
        for number in range(end - 1, self._width - 1, -1):
            step = recorded[number]
            if needed[number] and isinstance(step, _Operation):
                needed[step.a] = needed[step.b] = 1
        order = list(compress(range(end), needed))
        place = dict(zip(order, count(), strict=False))
        inputs = tuple(order[: bisect_left(order, self._width)])
        steps: list[_Operation | int] = []
        kept = {place[f.number] for f in roots}
        for number in reversed(order[len(inputs) :]):
            step = recorded[number]
            if isinstance(step, _Operation):
                a, b = place[step.a], place[step.b]
                last = {a, b} - kept
                kept |= last
                step = _Operation(step.op, a, b, tuple(last))
            steps.append(step)
        return Tape(inputs, tuple(reversed(steps)), {f: place[f.number] for f in roots})


@dataclass(frozen=True)
class Tape:
    """Operations in an order that computes operands before they are used.

    The first values are the table's columns ``inputs``; ``places`` has each formula's position.
    """

    inputs: tuple[int, ...]
    steps: tuple[_Operation | int, ...]
    places: Mapping[Formula, int]

    def run(self, table: Ints) -> dict[Formula, Column]:
        """The formulas for every row of *table*."""
        values: list[Any] = [np.ascontiguousarray(table[:, at]) for at in self.inputs]
        for step in self.steps:
            if isinstance(step, int):
                values.append(step)
            else:
                values.append(_COMPUTE[step.op](values[step.a], values[step.b]))
                for at in step.last:  # freed, so that the next result reuses its place in the cache
                    values[at] = None
        return {formula: Column(values[at]) for formula, at in self.places.items()}

    def bounds(self, low: Ints, high: Ints) -> dict[Formula, Bounded]:
        """Bounds of the formulas for tables with columns from ``low[row]`` to ``high[row]``."""
        values: list[Any] = [(low[:, at] * 1.0, high[:, at] * 1.0) for at in self.inputs]
        with np.errstate(invalid="ignore"):
            for step in self.steps:
                if isinstance(step, int):
                    values.append((float(step), float(step)))
                else:
                    values.append(bounded(step.op, values[step.a], values[step.b]))
        return {formula: values[at] for formula, at in self.places.items()}


def symbols_of(sizes: Iterable[Size]) -> list[Formula]:
    """The formulas among *sizes*."""
    return [size for size in sizes if isinstance(size, Formula)]


def _simplified(op: SizeOp, a: Size, b: Size) -> Size | None:
    """``a op b`` if it is *a*, *b* or a number, else None.  GCD operands must not be negative."""
    if isinstance(b, int):
        if b == _NEUTRAL.get(op):
            return a
        return b if b == _ABSORBING.get(op) else None
    if isinstance(a, int):
        if op in _COMMUTES and a == _NEUTRAL.get(op):
            return b
        return a if op in _COMMUTES and a == _ABSORBING.get(op) else None
    if a is b:
        return {SizeOp.SUB: 0, SizeOp.ABOVE: 0, SizeOp.MIN: a, SizeOp.MAX: a}.get(op)
    return None


_COMMUTES = frozenset({SizeOp.ADD, SizeOp.MUL, SizeOp.GCD})
_NEUTRAL: Mapping[SizeOp, int] = {
    SizeOp.ADD: 0, SizeOp.SUB: 0, SizeOp.MUL: 1, SizeOp.FLOORDIV: 1, SizeOp.GCD: 0
}  # fmt: skip
"""The second operand that leaves the first as it is."""
_ABSORBING: Mapping[SizeOp, int] = {SizeOp.MUL: 0, SizeOp.GCD: 1}
"""The operand that is the result, whatever the other one is."""


def _above(a: Ints, b: int) -> Ints:
    return (a > b).astype(np.int64)


def _floordiv(a: Any, b: Any) -> Ints:
    """Floor division in float64, because numpy does not vectorise integer division by columns.

    It is exact while the numbers are below 2**52: no quotient is then rounded up to an integer.
    """
    if isinstance(b, int):
        divided: Ints = np.floor_divide(a, b)
        return divided
    quotients: Ints = np.floor(np.true_divide(a, b)).astype(np.int64)
    return quotients


_COMPUTE: Mapping[SizeOp, Callable[[Any, Any], Any]] = {
    SizeOp.ADD: np.add,
    SizeOp.SUB: np.subtract,
    SizeOp.MUL: np.multiply,
    SizeOp.FLOORDIV: _floordiv,
    SizeOp.MIN: np.minimum,
    SizeOp.MAX: np.maximum,
    SizeOp.GCD: np.gcd,
    SizeOp.ABOVE: _above,
}
