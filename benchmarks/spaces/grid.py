"""Recorded grids: a search space reduced to a few thousand points, all of them measured.

A grid is one small ``.npz`` file of numeric arrays and a JSON header; nothing in it is ever
unpickled.  It contains the definition and the schedule's steps, so it stays readable when the rules
that generated the space change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from ansorpy.arrays import Floats, Ints
from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_from_dict
from ansorpy.measure.archive import DAMAGE, write_archive
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.task_conditions import TaskConditions
from ansorpy.schedule.decisions import cut
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json

__all__ = ["PENDING", "RETIMED", "Grid", "GridHeader", "read_grid", "write_grid"]


PENDING = 0
"""Code of a point that has not been measured yet."""

RETIMED = 50
"""Number of fastest points that are timed again in a complete grid."""


class GridHeader(TaskConditions):
    """What a grid describes, and how it was made.

    Args:
        dag: The task's definition, as :func:`~ansorpy.ir.text.serialize.dag_to_dict` writes it.
        definition: Name of the scheduled definition: ``direct`` or an algorithm's.
        scheduled: That definition; None when it is ``dag`` itself.
        steps: The schedule with its sizes open, as JSON.
        placed_steps: Number of steps before annotation; ``sketch_steps``: number of steps of the
            sketch itself.
        cut: The rows kept of each decision's domain.
        sizes: Number of rows in each full domain.
        refused: Points of the reduced grid that violate the constraints; not in the table.
        kinds: How a trial ended, by code; code 0 is :data:`PENDING`.
        default_s: Seconds of the default schedule; None when it was not measured.
        reasons: The first reason of each kind of failure.
    """

    format: Literal["ansorpy-grid"] = "ansorpy-grid"
    version: Literal[2] = 2
    dag: dict[str, Any]
    definition: str
    scheduled: dict[str, Any] | None
    steps: str
    placed_steps: int = Field(ge=0)
    sketch_steps: int = Field(ge=0)
    sketch: int = Field(ge=0)
    preset: str
    cut: dict[str, tuple[tuple[int, ...], ...]]
    sizes: dict[str, int]
    refused: int = Field(ge=0)
    kinds: tuple[Literal["pending"] | TrialKind, ...]
    default_s: float | None = Field(default=None, gt=0)
    reasons: dict[str, str] = {}
    machine: str
    command: str
    date: str


@dataclass(frozen=True, eq=False)
class Grid:
    """A recorded space.

    Args:
        rows: Every point the constraints allow, with columns as in :attr:`columns`.
        kinds: Code of how each point's trial ended.
        seconds: Measured median seconds of each point; NaN when it has no time.
        clock: Seconds of a fixed program of the space in the same batch as the point: the
            machine's clock drifts, and only ratios to it can be compared across batches.
        again_rows, again, again_clock: Points timed again: their row numbers, ten samples each, and
            the median of the fixed program timed alongside.
    """

    header: GridHeader
    rows: Ints
    kinds: npt.NDArray[np.uint8]
    seconds: Floats
    clock: Floats
    again_rows: Ints
    again: Floats
    again_clock: Floats

    @cached_property
    def task(self) -> Task:
        """The task that the grid's programs compute."""
        return self.header.task_of(dag_from_dict(self.header.dag))

    @cached_property
    def state(self) -> State:
        """The schedule, with its decisions open over the reduced domains.

        Raises:
            ForeignFile: The steps no longer lead to these decisions.
        """
        header = self.header
        dag = self.task.dag if header.scheduled is None else dag_from_dict(header.scheduled)
        state = State.replay(dag, steps_from_json(header.steps))
        names = [decision.name for decision in state.decisions]
        if set(names) != set(header.cut):
            raise ForeignFile(
                f"the grid {header.name} was recorded over {', '.join(header.cut)}; "
                f"its schedule now has the open decisions {', '.join(names)}",
                hint="record it again: python -m benchmarks.spaces.record",
            )
        return with_domains(state, header.cut)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in table order."""
        return tuple(column for d in self.state.decisions for column in d.columns)

    @property
    def is_complete(self) -> bool:
        """Whether every point was measured and the fastest ones were timed again."""
        timed = np.flatnonzero(np.isfinite(self.times))
        fastest = timed[np.argsort(self.times[timed], kind="stable")][:RETIMED]
        return not (self.kinds == PENDING).any() and set(fastest) <= set(self.again_rows)

    @cached_property
    def times(self) -> Floats:
        """Seconds of each point, normalized to one clock speed; infinite where not timed."""
        known = self.clock[np.isfinite(self.clock)]
        usual = float(np.median(known)) if len(known) else 1.0
        times = self.seconds / self.clock * usual
        again = np.median(self.again, axis=1) / self.again_clock * usual
        times[self.again_rows] = again
        times[np.isnan(times)] = np.inf
        return times

    @cached_property
    def best_s(self) -> float:
        """Seconds of the fastest point."""
        return float(self.times.min())

    def kind(self, row: int) -> TrialKind:
        """How the trial of point *row* ended."""
        kind = self.header.kinds[self.kinds[row]]
        return TrialKind.NOT_RECORDED if kind == "pending" else kind

    def result(self, row: int, incumbent_s: float | None = None) -> MeasureResult:
        """The trial of point *row*, as a runner that knows *incumbent_s* would report it."""
        kind, seconds = self.kind(row), float(self.times[row])
        if not np.isfinite(seconds):
            return MeasureResult(kind, reason=self.header.reasons.get(kind.value, kind.value))
        if incumbent_s is not None and seconds > TimingPolicy.slow_factor * incumbent_s:
            return MeasureResult(TrialKind.SLOW, (seconds,), "slow compared with the best so far")
        return MeasureResult(TrialKind.OK, (seconds,))


def with_domains(state: State, kept: Mapping[str, tuple[tuple[int, ...], ...]]) -> State:
    """Restrict the domain of every decision of *state* to the rows *kept*."""
    decisions = tuple(replace(d, domain=cut(d.domain, kept[d.name])) for d in state.decisions)
    return replace(state, decisions=decisions)


_ARRAYS = {
    "rows": (np.int32, 2), "kinds": (np.uint8, 1), "seconds": (np.float32, 1),
    "clock": (np.float32, 1), "again_rows": (np.int32, 1), "again": (np.float32, 2),
    "again_clock": (np.float32, 1),
}  # fmt: skip


def write_grid(grid: Grid, path: Path) -> None:
    """Write *grid* to *path* atomically: a reader sees the old file or the new one."""
    arrays: dict[str, npt.NDArray[Any]] = {
        name: getattr(grid, name).astype(dtype) for name, (dtype, _) in _ARRAYS.items()
    }
    write_archive(path, grid.header, arrays)


def read_grid(path: Path) -> Grid:
    """Read and validate the grid in *path*.

    Raises:
        ForeignFile: It is not a grid, or is inconsistent.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = GridHeader.model_validate_json(archive["header"].tobytes())
            arrays = {name: archive[name] for name in _ARRAYS}
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ForeignFile(f"{path} is not a recorded grid: {where}: {first['msg']}") from None
    except DAMAGE as error:
        raise ForeignFile(f"{path} is not a recorded grid: {error}") from None
    problem = _problem(header, arrays)
    if problem:
        raise ForeignFile(f"{path} is a damaged grid: {problem}")
    wide = {
        name: array.astype(np.float64 if array.dtype == np.float32 else np.int64)
        for name, array in arrays.items() if name != "kinds"
    }  # fmt: skip
    return Grid(header=header, kinds=arrays["kinds"], **wide)


def _problem(header: GridHeader, arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Describe what is wrong with the arrays; empty when nothing is."""
    for name, (dtype, ndim) in _ARRAYS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != ndim:
            return f"{name} has type {arrays[name].dtype} and {arrays[name].ndim} dimensions"
    rows, again_rows = arrays["rows"], arrays["again_rows"]
    points, again = len(rows), len(again_rows)
    lengths = {name: len(arrays[name]) for name in ("kinds", "seconds", "clock")}
    lengths_again = {name: len(arrays[name]) for name in ("again", "again_clock")}
    if set(lengths.values()) != {points} or set(lengths_again.values()) != {again}:
        return f"{points} points, {again} timed again, but {lengths | lengths_again}"
    if points and arrays["kinds"].max() >= len(header.kinds):
        return "a trial's code that the header does not explain"
    if again and not 0 <= again_rows.min() <= again_rows.max() < points:
        return "a point was timed again that is not in the grid"
    if len(np.unique(rows, axis=0)) != points:
        return "a point occurs twice"
    product = int(np.prod([len(kept) for kept in header.cut.values()], dtype=np.int64))
    if points + header.refused != product:
        return f"{points} points and {header.refused} refused ones, but {product} in all"
    timed = np.isfinite(arrays["seconds"])
    if not (arrays["seconds"][timed] > 0).all() or not (arrays["clock"][timed] > 0).all():
        return "a time that is not positive"
    is_ok = np.array([kind is TrialKind.OK for kind in header.kinds], dtype=np.bool_)
    if (is_ok[arrays["kinds"]] & ~timed).any():
        return "a correct point without a time"
    return ""
