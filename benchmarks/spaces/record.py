"""``python -m benchmarks.spaces.record NAME...``: measure every point of recorded spaces.

Progress is saved in ``build/spaces/NAME.npz`` after each batch, so a run that was stopped can be
resumed; ``--seconds`` limits its time.  With ``--build``, programs are only compiled for a later
run that times them; this needs no quiet machine.  A complete space is moved to the folder where the
benchmark looks for it.  Points are measured in random order, each batch between two runs of one
fixed program of the space, so that drift of the machine's clock favours no region of the space and
can be divided out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ansorpy.cli.exit_codes import exit_code
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.errors import VerificationFailed
from ansorpy.ir.text.serialize import dag_to_dict
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.task_conditions import conditions_of
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_to_json
from ansorpy.search.population import score
from ansorpy.target import Target, machine_name
from benchmarks.common.command import command_line
from benchmarks.spaces.catalogue import PLANS, Plan, plan_named
from benchmarks.spaces.cut import cut_down
from benchmarks.spaces.grid import PENDING, RETIMED, Grid, GridHeader, read_grid, write_grid
from benchmarks.spaces.grid_source import GridSource
from benchmarks.spaces.prebuilt import Prebuilt

__all__ = ["main"]

WORK = Path("build/spaces")
BATCH = 15
ROUNDS = 10
DISTURBED = 1.15
"""A batch is measured again if the fixed program took this many times longer at one end of it,"""

DRIFT = 1.5
"""or this many times longer than usual; clock drift does not explain that."""

_KINDS = tuple(kind for kind in TrialKind if kind is not TrialKind.NOT_RECORDED)

_POLICY = TimingPolicy(sample_s=0.002, slow_factor=10.0, rounds=ROUNDS)
"""Programs ten times slower than the best are timed once, as their exact time does not matter."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a space is not complete yet."""
    p = command_line("spaces.record", __doc__)
    p.add_argument("names", nargs="+", choices=[plan.name for plan in PLANS])
    p.add_argument("--build", action="store_true", help="only compile, for a later run to time")
    p.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = p.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    work = _build if options.build else _record
    return exit_code(
        lambda: int(not all([work(plan_named(name), deadline) for name in options.names]))
    )


def _record(plan: Plan, deadline: float) -> bool:
    """Measure points of *plan* until it is complete (then True) or time is up."""
    if plan.path.exists():
        return True
    path, recording = _begun(plan)
    with LocalRunner(MeasureOptions(policy=_POLICY), Prebuilt(_objects(plan))) as runner:
        recording.measure_default(runner)
        write_grid(recording.grid, path)
        while recording.pending.size and time.monotonic() < deadline:
            recording.measure_batch(runner)
            write_grid(recording.grid, path)
            recording.say()
        while not recording.pending.size and not recording.grid.is_complete:
            if time.monotonic() >= deadline:
                break
            recording.time_again(runner)
            write_grid(recording.grid, path)
    if not recording.grid.is_complete:
        return False
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    write_grid(recording.grid, plan.path)
    _objects(plan).unlink()
    print(f"{plan.name}: complete, best {recording.grid.best_s * 1e3:.4f} ms")
    return True


def _build(plan: Plan, deadline: float) -> bool:
    """Compile the points of *plan* until none is left (then True) or time is up."""
    if plan.path.exists():
        return True
    _, recording = _begun(plan)
    states = recording.states()
    with closing(Prebuilt(_objects(plan))) as service:
        for at in range(0, len(states), BATCH):
            if time.monotonic() >= deadline:
                return False
            service.build(recording.task, states[at : at + BATCH])
    return True


def _begun(plan: Plan) -> tuple[Path, _Recording]:
    """The progress on *plan* so far, and the path where it is stored."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / plan.path.name
    if not path.exists():
        write_grid(begin(plan), path)
    return path, _Recording(read_grid(path))


def _objects(plan: Plan) -> Path:
    return WORK / f"{plan.name}.objects"


def begin(plan: Plan) -> Grid:
    """The grid of *plan* with no points measured."""
    task = plan.task(Target.host())
    sketch = plan.sketch(task)
    found = cut_down(sketch, plan.points)
    state, placed, points = sketch.space.state, sketch.placed, len(found.rows)
    header = GridHeader(
        **conditions_of(task), dag=dag_to_dict(task.dag), definition=sketch.definition,
        scheduled=None if state.definition is task.dag else dag_to_dict(state.definition),
        steps=steps_to_json(state.history), placed_steps=len(placed.history),
        sketch_steps=sketch.sketch_steps, sketch=sketch.number,
        preset=sketch.preset.name, cut=dict(found.kept),
        sizes={d.name: len(d.domain.rows) for d in sketch.space.decisions},
        refused=found.refused, kinds=("pending", *_KINDS), machine=machine_name(),
        command=f"python -m benchmarks.spaces.record {plan.name}",
        date=datetime.now(UTC).date().isoformat(),
    )  # fmt: skip
    return Grid(
        header, rows=found.rows, kinds=np.full(points, PENDING, dtype=np.uint8),
        seconds=np.full(points, np.nan), clock=np.full(points, np.nan),
        again_rows=np.zeros(0, dtype=np.int64), again=np.zeros((0, ROUNDS)),
        again_clock=np.zeros(0),
    )  # fmt: skip


@dataclass
class _Recording:
    """A grid being measured; its fixed program is the one that the analytic model ranks best."""

    grid: Grid

    def __post_init__(self) -> None:
        grid = self.grid
        self.task, self.sketch = grid.task, GridSource(grid).sketch
        scores = score(self.task, AnalyticModel(), self.sketch, grid.rows).scores
        self.fixed = self._state(int(scores.argmax()))
        self.order = np.random.default_rng(0).permutation(len(grid.rows))
        self.began_at, self.began_with = time.monotonic(), len(self.pending)

    @property
    def pending(self) -> npt.NDArray[np.int64]:
        """Numbers of the points not measured yet, in measuring order."""
        left: npt.NDArray[np.int64] = self.order[self.grid.kinds[self.order] == PENDING]
        return left

    def states(self) -> list[State]:
        """The programs not measured yet, with the fixed one first."""
        return [self.fixed, *map(self._state, self.pending)]

    def measure_default(self, runner: LocalRunner) -> None:
        """Measure the default schedule, once."""
        header = self.grid.header
        if header.default_s is None:
            default = State.initial(self.task.dag)
            [result] = runner.measure(self.task, [default], incumbent_s=None)
            default_s = result.median_s if result.ok else None
            self.grid = replace(
                self.grid, header=header.model_copy(update={"default_s": default_s})
            )

    def measure_batch(self, runner: LocalRunner) -> None:
        """Measure the next points between two runs of the fixed program; keep them if it agrees."""
        numbers = self.pending[:BATCH]
        states = [self.fixed, *map(self._state, numbers), self.fixed]
        best_s = self.grid.best_s if np.isfinite(self.grid.times).any() else None
        before, *results, after = runner.measure(self.task, states, incumbent_s=best_s)
        if not before.seconds or not after.seconds:
            reason = before.reason or after.reason
            raise VerificationFailed(f"the program to compare with does not run: {reason}")
        slow, fast = sorted((before.median_s, after.median_s), reverse=True)
        clocks = self.grid.clock[np.isfinite(self.grid.clock)]
        usual = float(np.median(clocks)) if len(clocks) else fast
        if not before.ok or not after.ok or slow > DISTURBED * fast or slow > DRIFT * usual:
            print(f"{self.grid.header.name}: a batch was disturbed; measuring again", flush=True)
            return
        kinds, seconds = self.grid.kinds.copy(), self.grid.seconds.copy()
        clock = self.grid.clock.copy()
        for number, result in zip(numbers, results, strict=True):
            kinds[number] = 1 + _KINDS.index(result.kind)
            if result.seconds:
                seconds[number], clock[number] = result.median_s, (slow + fast) / 2
        self.grid = replace(
            self.grid, header=self._with_reasons(results), kinds=kinds, seconds=seconds, clock=clock
        )

    def time_again(self, runner: LocalRunner) -> None:
        """Time the fastest points that were timed only once again, alternating between them."""
        grid = self.grid
        fastest = np.argsort(grid.times, kind="stable")[:RETIMED]
        numbers = np.setdiff1d(fastest[np.isfinite(grid.times[fastest])], grid.again_rows)
        states = [self.fixed, *map(self._state, numbers)]
        runner.measure(self.task, [self.fixed], incumbent_s=None)  # makes the reference
        fixed, *results = runner.retime(self.task, states)
        bad = [r.reason for r in (fixed, *results) if not r.ok]
        if bad:
            raise VerificationFailed(f"a program that was timed does not run again: {bad[0]}")
        self.grid = replace(
            grid,
            again_rows=np.concatenate([grid.again_rows, numbers]),
            again=np.concatenate([grid.again, [_all_rounds(r.seconds) for r in results]]),
            again_clock=np.concatenate([grid.again_clock, np.full(len(numbers), fixed.median_s)]),
        )

    def say(self) -> None:
        """Print one line of progress."""
        left, spent = len(self.pending), time.monotonic() - self.began_at
        rate = (self.began_with - left) / spent
        print(
            f"{self.grid.header.name}: {left} left, {rate:.1f}/s, "
            f"best {self.grid.best_s * 1e3:.4f} ms",
            flush=True,
        )

    def _with_reasons(self, results: Sequence[MeasureResult]) -> GridHeader:
        reasons = dict(self.grid.header.reasons)
        for result in results:
            if not result.seconds:
                reasons.setdefault(result.kind.value, result.reason)
        return self.grid.header.model_copy(update={"reasons": reasons})

    def _state(self, number: int) -> State:
        return Space(self.sketch.state).resolve(self.grid.rows[number])


def _all_rounds(seconds: Sequence[float]) -> list[float]:
    """*seconds* of each round; those for which no time was left count as the median of the rest."""
    return [*seconds, *[float(np.median(seconds))] * (ROUNDS - len(seconds))]


if __name__ == "__main__":
    sys.exit(main())
