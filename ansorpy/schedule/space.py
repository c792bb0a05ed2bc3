"""The search space of a sketch: its open decisions are the columns of a population table.

A candidate is a row of integers; each column holds (part of) a decision's value.  Sampling,
mutation and the constraint masks work on whole tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import Decision, columns_of, moves
from ansorpy.schedule.row_numbers import RowNumbers
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.schedule.tables.formulas import Formula, Formulas, Tape, symbols_of
from ansorpy.schedule.tables.nest import Nest
from ansorpy.schedule.tables.nest_table import NestFormulas
from ansorpy.schedule.tables.size import Column, Size

__all__ = ["Constraint", "Domains", "Space", "Table", "hull"]

Table = npt.NDArray[np.int64]
"""A population table: ``table[row, column]``, with one row per candidate."""

Domains: TypeAlias = tuple[Table, ...]
"""The rows that each decision may still take."""

_REDRAWS = 16
"""How often a decision is drawn for a row in an attempt."""

_ATTEMPTS = 4


@dataclass(frozen=True)
class Constraint:
    """A condition on every candidate: ``holds`` maps the bounds of its state to a 0/1 size."""

    name: str
    holds: Callable[[Bounds], Size]


@dataclass(frozen=True)
class Space:
    """All candidates of one placed sketch: its remaining decisions are sizes and counts."""

    state: State
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        return self.state.decisions

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names in table order."""
        return columns_of(self.decisions)

    @cached_property
    def slices(self) -> Mapping[str, slice]:
        """Decision name -> its columns in the table."""
        starts, at = {}, 0
        for decision in self.decisions:
            starts[decision.name] = slice(at, at + len(decision.columns))
            at += len(decision.columns)
        return starts

    @cached_property
    def _row_numbers(self) -> tuple[RowNumbers, ...]:
        """The rows of each decision's domain, by number."""
        return tuple(RowNumbers(d.domain.rows) for d in self.decisions)

    @property
    def size(self) -> int:
        """Number of rows before constraints."""
        total = 1
        for decision in self.decisions:
            total *= len(decision.domain.rows)
        return total

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """*n* rows, with each decision uniform over its domain; constraints are not applied."""
        numbers = [rng.integers(len(d.domain.rows), size=n) for d in self.decisions]
        return self.decode(np.array(numbers, dtype=np.int64).reshape(-1, n).T)

    def encode(self, table: Table) -> Table:
        """``numbers[row, decision]``: which row of its domain each decision has; -1 for none."""
        numbers = np.zeros((len(table), len(self.decisions)), dtype=np.int64)
        for k, decision in enumerate(self.decisions):
            numbers[:, k] = self._row_numbers[k].of(table[:, self.slices[decision.name]])
        return numbers

    def decode(self, numbers: Table) -> Table:
        """The table whose decisions have the rows of their domains with these *numbers*."""
        table = np.zeros((len(numbers), len(self.columns)), dtype=np.int64)
        for k, decision in enumerate(self.decisions):
            table[:, self.slices[decision.name]] = decision.domain.rows[numbers[:, k]]
        return table

    @property
    def domains(self) -> Domains:
        """All rows of each decision's domain, in the order of :attr:`decisions`."""
        return tuple(d.domain.rows for d in self.decisions)

    def possible(self, low: Table, high: Table) -> npt.NDArray[np.bool_]:
        """Mask of the boxes ``low[r] <= row <= high[r]`` that may contain a valid row.

        It is True for every box that does, and usually False for those that do not.
        """
        recorded, program = self._recorded("constraints", self._held)
        bounds = program.bounds(low, high)
        mask = np.ones(len(low), dtype=np.bool_)
        for held in recorded:
            mask &= (bounds[held][1] if isinstance(held, Formula) else np.asarray(held)) > 0
        return mask

    def propagate(self, domains: Domains) -> Domains:
        """The rows of *domains* that a valid row of the table may have; empty if there is none.

        A row is dropped when bounds on the constraints rule it out whatever the other decisions
        are (:meth:`possible`), again and again until none is.
        """
        while all(len(rows) for rows in domains):
            low, high = hull(domains)
            kept = []
            for rows, at in zip(domains, self.slices.values(), strict=True):
                lows, highs = np.tile(low, (len(rows), 1)), np.tile(high, (len(rows), 1))
                lows[:, at] = highs[:, at] = rows
                kept.append(rows[self.possible(lows, highs)])
            if all(len(rows) == len(before) for rows, before in zip(kept, domains, strict=True)):
                return domains
            domains = tuple(kept)
        return tuple(rows[:0] for rows in domains)

    @cached_property
    def feasible(self) -> Domains:
        """What :meth:`propagate` leaves of all :attr:`domains`."""
        return self.propagate(self.domains)

    def complete(self, choices: Sequence[Table], rng: np.random.Generator) -> Table:
        """Valid rows, each decision's part drawn from its own ``choices[row, choice, column]``.

        A row for which no valid combination is found in a few attempts is left out.
        """
        done = [np.zeros((0, len(self.columns)), dtype=np.int64)]
        for _ in range(_ATTEMPTS):
            if not choices or not len(choices[0]):
                break
            table, left = self._completed(choices, rng)
            done.append(table)
            choices = [part[left] for part in choices]
        return np.concatenate(done)

    def _completed(
        self, choices: Sequence[Table], rng: np.random.Generator
    ) -> tuple[Table, npt.NDArray[np.intp]]:
        """Rows completed in one attempt, and the numbers of the rows that were not.

        Decisions are drawn in random order, each a few times; the first draw counts after which, by
        the bounds, the rest of the row can be valid.
        """
        low = np.concatenate([part.min(axis=1) for part in choices], axis=1)
        high = np.concatenate([part.max(axis=1) for part in choices], axis=1)
        slices, lost = list(self.slices.values()), np.zeros(len(low), dtype=np.bool_)
        for number in rng.permutation(len(slices)):
            part, at = choices[number], slices[number]
            drawn = rng.integers(part.shape[1], size=(len(low), _REDRAWS))
            values = np.take_along_axis(part, drawn[:, :, None], axis=1)
            lows, highs = (np.repeat(end, _REDRAWS, axis=0) for end in (low, high))
            lows[:, at] = highs[:, at] = values.reshape(len(lows), -1)
            fits = self.possible(lows, highs).reshape(drawn.shape)
            low[:, at] = high[:, at] = values[np.arange(len(low)), fits.argmax(axis=1)]
            lost |= ~fits.any(axis=1)
        return low[~lost], np.flatnonzero(lost)

    def rows(self, start: int, n: int) -> Table:
        """At most *n* rows from number *start* on, out of all :attr:`size` rows in order.

        The last decision changes fastest; constraints are not applied.
        """
        number, carry = start, np.arange(max(min(n, self.size - start), 0))
        numbers = np.zeros((len(carry), len(self.decisions)), dtype=np.int64)
        for k, decision in reversed(list(enumerate(self.decisions))):
            number, digit = divmod(number, len(decision.domain.rows))
            carry, numbers[:, k] = np.divmod(digit + carry, len(decision.domain.rows))
        return self.decode(numbers)

    def neighbours(self, row: Table, decision: str, radius: int = 1) -> Table:
        """The rows *radius* steps from *row* along one decision; constraints are not applied.

        :func:`~ansorpy.schedule.decisions.moves` says what a step is.
        """
        [k] = [k for k, d in enumerate(self.decisions) if d.name == decision]
        step, at = moves(self.decisions[k].domain), self.slices[decision]
        here = np.repeat(self._row_numbers[k].of(row[None, at]), len(step))
        for _ in range(radius):
            before, here = here, step[np.arange(len(step)), here]
        reached = here[here != before]
        table = np.tile(row, (len(reached), 1))
        table[:, at] = self.decisions[k].domain.rows[reached]
        return table

    def tokens(self, row: Table) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The decisions of *row* as (decision, values); equal parts of rows give equal tokens."""
        return tuple((d.name, tuple(row[self.slices[d.name]].tolist())) for d in self.decisions)

    def values(self, table: Table) -> dict[str, Size]:
        """Column name -> the table's column, for code that computes with sizes."""
        return {name: Column(table[:, k]) for k, name in enumerate(self.columns)}

    @cached_property
    def _formulas(self) -> Formulas:
        fixed = {
            column: int(value)
            for d in self.decisions
            if len(d.domain.rows) == 1
            for column, value in zip(d.columns, d.domain.rows[0], strict=True)
        }
        return Formulas(self.columns, fixed)

    @cached_property
    def _bounds(self) -> Bounds:
        """The bounds as formulas, which constraints and the loop nest share."""
        return Bounds(self.state, self._formulas.values)

    @cached_property
    def _computed(self) -> dict[Hashable, tuple[tuple[Size, ...], Tape]]:
        return {}

    @cached_property
    def _nest(self) -> NestFormulas:
        return NestFormulas(self._bounds, self._formulas)

    def compute(
        self, name: Hashable, sizes: Callable[[Bounds], Sequence[Size]], table: Table
    ) -> tuple[Size, ...]:
        """Evaluate ``sizes`` on the columns of *table*; ``sizes`` itself runs once for each *name*.

        Rows must lie in the domains: a column whose domain has one value counts as that number.
        """
        recorded, program = self._recorded(name, sizes)
        values = program.run(table)
        return tuple(values[size] if isinstance(size, Formula) else size for size in recorded)

    def _recorded(
        self, name: Hashable, sizes: Callable[[Bounds], Sequence[Size]]
    ) -> tuple[tuple[Size, ...], Tape]:
        if name not in self._computed:
            recorded = tuple(sizes(self._bounds))
            self._computed[name] = recorded, self._formulas.program(symbols_of(recorded))
        return self._computed[name]

    def nest(self, table: Table) -> Nest:
        """The loop nest of every row of *table*, with the distinct settings of each statement."""
        return self._nest.of(table)

    def valid(self, table: Table) -> npt.NDArray[np.bool_]:
        """Mask of the rows that satisfy every constraint."""
        mask = np.ones(len(table), dtype=np.bool_)
        for held in self.compute("constraints", self._held, table):
            mask &= np.asarray(held.values if isinstance(held, Column) else held, dtype=np.bool_)
        return mask

    def _held(self, bounds: Bounds) -> list[Size]:
        return [constraint.holds(bounds) for constraint in self.constraints]

    def within(self, table: Table) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose decisions all lie in their domains; ignores constraints."""
        return np.asarray((self.encode(table) >= 0).all(axis=1), dtype=np.bool_)

    def resolve(self, row: Sequence[int] | Table) -> State:
        """The program of one row."""
        return self.state.resolve(self._values(row))

    def steps(self, row: Sequence[int] | Table) -> list[Step]:
        """The steps that :meth:`resolve` takes, even if one of them is impossible."""
        return self.state.resolved(self._values(row))

    def _values(self, row: Sequence[int] | Table) -> dict[str, int]:
        return dict(zip(self.columns, (int(v) for v in row), strict=True))

    def contains(self, row: Sequence[int] | Table) -> bool:
        """Whether every decision's part of *row* lies in its domain and all constraints hold."""
        numbers = np.asarray(row, dtype=np.int64)
        if numbers.shape != (len(self.columns),):
            return False
        return bool(self.within(numbers[None, :])[0]) and bool(self.valid(numbers[None, :])[0])


def hull(domains: Domains) -> tuple[Table, Table]:
    """The least and the greatest value of each column; no domain may be empty."""
    low = [np.zeros(0, dtype=np.int64), *(rows.min(axis=0) for rows in domains)]
    high = [np.zeros(0, dtype=np.int64), *(rows.max(axis=0) for rows in domains)]
    return np.concatenate(low), np.concatenate(high)
