"""How well the closed-form model ranks random programs, by their times on the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.nest_view import view_nest
from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.measure.gpu.runner import GpuRunner
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.common.command import say
from benchmarks.cuda.definitions import product
from benchmarks.cuda.gpu_run import GpuRun
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.depthwise import DepthwiseConv2d
from benchmarks.ops.families.elementwise import Softmax
from benchmarks.ops.families.norms import MatrixNorm

__all__ = ["TASKS", "Predicted", "RankRun", "Ranked", "drawn_candidates", "rank_all"]

_BEST, _CHOSEN = 0.1, 0.2
"""The share of the programs that are fastest, and the share that the model would choose."""

TASKS: Mapping[str, Callable[[], list[Tensor]]] = {
    "matmul.float32.1024": partial(product, "float32", 1024, 1024, 1024),
    "matmul.float16.2048": partial(product, "float16", 2048, 2048, 2048),
    "conv2d.56": Conv2d("C2D", (56, 56), 64, 64, 3, 1, 1).tensors,
    "depthwise.112": DepthwiseConv2d("DEP", (112, 112), 32, 32, 3, 1, 1).tensors,
    "softmax.4096": Softmax("SOFTMAX", (4096, 1024)).tensors,
    "norm.4096": MatrixNorm("NRM", 4096, 1024).tensors,
}
"""The tasks by name, the most important first."""


class Predicted(BaseModel):
    """One program: what the model predicts, and what was measured, infinite if it failed."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

    steps: str
    predicted_s: float
    measured_s: float = math.inf
    kind: str
    reason: str = ""


class Ranked(BaseModel):
    """The programs of one task."""

    model_config = ConfigDict(extra="forbid")

    name: str
    programs: list[Predicted] = []
    took_s: float = 0.0
    failure: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether there was time for all programs."""
        return not self.failure and all(program.kind != "cut" for program in self.programs)

    @property
    def timed(self) -> list[Predicted]:
        """Those with a time."""
        return [program for program in self.programs if math.isfinite(program.measured_s)]

    @property
    def correlation(self) -> float:
        """Spearman's, of predicted and measured times."""
        timed = self.timed
        return rank_correlation(
            np.array([program.predicted_s for program in timed]),
            np.array([program.measured_s for program in timed]),
        )

    @property
    def found(self) -> tuple[int, int]:
        """How many of the fastest programs the model would choose, and how many there are."""
        timed = sorted(self.timed, key=lambda program: program.measured_s)
        best = timed[: math.ceil(_BEST * len(timed))]
        chosen = sorted(timed, key=lambda program: program.predicted_s)
        chosen = chosen[: math.ceil(_CHOSEN * len(timed))]
        return sum(program in chosen for program in best), len(best)

    @property
    def line(self) -> str:
        if self.failure:
            return f"{self.name}: {self.failure}"
        kinds = {program.kind for program in self.programs} - {"ok"}
        others = [f"{sum(p.kind == kind for p in self.programs)} {kind}" for kind in sorted(kinds)]
        found, best = self.found
        return (
            f"{self.name}: Spearman {self.correlation:.2f}, {found} of the best {best} chosen, "
            f"{len(self.timed)} timed{''.join(', ' + other for other in others)} "
            f"({self.took_s:.0f} s)"
        )


class RankRun(GpuRun):
    """All tasks on one GPU."""

    tasks: list[Ranked] = []

    @property
    def failed(self) -> bool:
        """Whether a task failed, or a program of it was wrong or crashed."""
        bad = {"crash", "wrong_result", "run_error"}
        return any(task.failure or bad & {p.kind for p in task.programs} for task in self.tasks)


def drawn_candidates(task: Task, count: int, rng: np.random.Generator) -> list[tuple[State, float]]:
    """About *count* random programs from all sketches, with the seconds the model predicts.

    They are shuffled, so that those measured before the time is up are from all sketches, too.
    """
    sampler = SketchSampler(task)
    sketches = sampler.draw(min(count, 3 * len(sampler.pairs)), rng)
    each = math.ceil(count / len(sketches))
    found: list[tuple[State, float]] = []
    for sketch in sketches:
        table = sketch.sample(256, rng)
        rows = table[sketch.valid(table)][:each]
        if not len(rows):
            continue
        seconds = AnalyticModel().seconds(task, view_nest(sketch.space.nest(rows), len(rows)))
        for row, predicted in zip(rows, np.broadcast_to(seconds, len(rows)), strict=True):
            try:
                found.append((sketch.resolve(row), float(predicted)))
            except AnsorpyError:
                continue  # no program exists for this row
    return [found[n] for n in rng.permutation(len(found))]


def rank_all(
    run: RankRun, file: Path, target: Target, open_runner: Callable[[], GpuRunner], count: int,
    end: float, *, tasks: Mapping[str, Callable[[], Sequence[Tensor]]] = TASKS, again: bool = False,
) -> RankRun:  # fmt: skip
    """Measure *count* programs of each task that *run* has not as a whole, until the moment *end*.

    The remaining time is shared out evenly; what was not measured in time has the kind ``cut``.
    """
    held = {task.name for task in run.tasks if task.is_whole and not again}
    waiting = [name for name in tasks if name not in held]
    run.waiting = list(waiting)
    run.write(file)
    if not waiting:
        return run
    with open_runner() as runner:
        while waiting and monotonic() < end:
            moment = monotonic() + (end - monotonic()) / len(waiting)
            name = waiting.pop(0)
            ranked = _ranked(name, tasks[name], target, runner, count, moment)
            say(ranked.line)
            run.tasks = [task for task in run.tasks if task.name != name] + [ranked]
            run.waiting.remove(name)
            run.write(file)
    return run


def _ranked(
    name: str, tensors: Callable[[], Sequence[Tensor]], target: Target, runner: GpuRunner,
    count: int, moment: float,
) -> Ranked:  # fmt: skip
    begin, ranked = monotonic(), Ranked(name=name)
    try:
        task = Task(ComputeDAG.of(tensors()), target, 1, name=name)
        drawn = drawn_candidates(task, count, np.random.default_rng(0))
        with until(moment):
            results = runner.measure(task, [state for state, _ in drawn], incumbent_s=None)
    except Exception as error:  # the other tasks are measured whatever happens in this one
        ranked.failure = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        ranked.programs = [
            Predicted(
                steps=str(state.history), predicted_s=predicted, measured_s=result.median_s,
                kind=result.kind.value, reason=result.reason[:400],
            )
            for (state, predicted), result in zip(drawn, results, strict=True)
        ]  # fmt: skip
    ranked.took_s = monotonic() - begin
    return ranked
