"""Searching a recorded grid, to compare strategies and models without hardware or noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.rules.algorithms.base import Definition
from ansorpy.rules.placed_sketch import Pair, PartialSketch, PlacedSketch
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.decisions import nearest
from ansorpy.schedule.row_numbers import RowNumbers
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from benchmarks.spaces.grid import Grid

__all__ = ["GridRunner", "GridSource"]


@dataclass(frozen=True, eq=False)
class _GridSketch(PlacedSketch):
    """The placed sketch of a grid: samples stay inside it, and bound programs are remembered."""

    bound: WeakKeyDictionary[State, Table] = field(default_factory=WeakKeyDictionary)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """*n* rows sampled by the annotation rules, each decision moved into the reduced domain."""
        table = super().sample(n, rng)
        for decision in self.space.decisions:
            at = self.space.slices[decision.name]
            table[:, at] = nearest(decision.domain, table[:, at])
        return table

    def resolve(self, row: Sequence[int] | Table) -> State:
        state = super().resolve(row)
        self.bound[state] = np.array(row, dtype=np.int64)
        return state


@dataclass(frozen=True)
class _GridSpace(Space):
    """The space of a grid: valid rows are the recorded ones, whatever the constraints."""

    recorded: Table = field(kw_only=True)
    numbers: RowNumbers = field(kw_only=True)

    def valid(self, table: Table) -> npt.NDArray[np.bool_]:
        """Boolean mask of the rows that were recorded."""
        return self.numbers.of(table) >= 0

    def possible(self, low: Table, high: Table) -> npt.NDArray[np.bool_]:
        """Boolean mask of the boxes that contain a recorded row."""
        found = np.zeros(len(low), dtype=np.bool_)
        for at, (least, most) in enumerate(zip(low, high, strict=True)):
            found[at] = ((self.recorded >= least) & (self.recorded <= most)).all(axis=1).any()
        return found


class GridSource:
    """The one placed sketch of a grid as a :class:`~ansorpy.search.population.SketchSource`.

    Only recorded rows are valid, so sampling, mutation and crossover stay inside the grid.
    """

    def __init__(self, grid: Grid) -> None:
        header = grid.header
        name, state = header.definition, grid.state
        target = header.target.with_threads(header.threads)
        preset = replace(preset_for(target, header.preset), move=None)
        self.grid = grid
        self.numbers = RowNumbers(grid.rows)
        space = _GridSpace(state, recorded=grid.rows, numbers=self.numbers)
        placed = State.replay(state.definition, state.history[: header.placed_steps])
        self.sketch = _GridSketch(
            name, placed, header.sketch, header.sketch_steps, space, target, preset,
            lambda number, placed: self.sketch,
        )  # fmt: skip
        self.definitions = (Definition(name, state.definition),)
        self.pairs = (Pair(name, header.sketch),)

    def begin(self, number: int) -> PartialSketch:
        """The grid's sketch, which has no other placement."""
        sketch = self.sketch
        return PartialSketch.begin(number, sketch.placed, sketch.target, (), sketch.make)

    def draw(
        self, n: int, rng: np.random.Generator, shares: Mapping[Pair, float] | None = None
    ) -> list[PlacedSketch]:
        """The grid's placed sketch."""
        return [self.sketch]

    def every(self) -> Iterator[PlacedSketch]:
        """The grid's placed sketch."""
        yield self.sketch

    def number(self, state: State) -> int | None:
        """The number of the grid point that *state* was bound from; None for other programs."""
        row = self.sketch.bound.get(state)
        if row is None:
            return None
        [number] = self.numbers.of(row[None])
        return None if number < 0 else int(number)


class GridRunner:
    """A :class:`~ansorpy.measure.run.interfaces.Runner` that returns results recorded in a grid.

    A program that is neither in the grid nor its default schedule is NOT_RECORDED.
    """

    def __init__(self, source: GridSource) -> None:
        self._source = source

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """The recorded results; one far slower than *incumbent_s* is SLOW, as on the machine."""
        results = []
        for state in candidates:
            known = None if observer is None else observer.started(state)
            result = known or self._recorded(state, incumbent_s)
            if result.ok:
                incumbent_s = min(result.median_s, incumbent_s or result.median_s)
            if observer is not None and known is None:
                observer.ended(TrialEnd(state, result))
            results.append(result)
        return results

    def _recorded(self, state: State, incumbent_s: float | None) -> MeasureResult:
        grid, number = self._source.grid, self._source.number(state)
        if number is not None:
            return grid.result(number, incumbent_s)
        default_s = grid.header.default_s
        if not state.history and default_s is not None:
            return MeasureResult(TrialKind.OK, (default_s,))
        return MeasureResult(TrialKind.NOT_RECORDED, reason=f"{grid.header.name} has no such point")
