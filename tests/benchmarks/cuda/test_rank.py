"""The ranks of programs that the model predicts, on a simulated GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from benchmarks.cuda.definitions import product, row_sums
from benchmarks.cuda.rank import (
    TASKS,
    Predicted,
    Ranked,
    RankRun,
    drawn_candidates,
    rank_all,
)
from tests.codegen.cuda.simulated import GPU
from tests.measure.gpu.simulated import simulated_built

SMALL = {
    "matmul": partial(product, "float32", 5, 3, 2), "sums": partial(row_sums, 3, 37),
}  # fmt: skip


@dataclass(frozen=True)
class Builder:
    """Builds for the simulated GPU in this process."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [self._built(task, state) for state in states]

    def _built(self, task: Task, state: State) -> Built | MeasureResult:
        if task.target.backend != GPU.backend:
            return build_lowered(lower(state), task.target, "reference")
        try:
            return simulated_built(state)
        except AnsorpyError as error:
            return MeasureResult(TrialKind.BUILD_ERROR, reason=str(error))

    def close(self) -> None:
        """Nothing to give up."""


def opened(folder: Path) -> GpuRunner:
    options = MeasureOptions(builders=1, lock_folder=folder)
    module = "tests.measure.gpu.simulated"
    return GpuRunner([Gpu(0, "rank")], options, Builder(), module=module)


def test_tasks_are_ranked_and_resumed(tmp_path: Path) -> None:
    file, run = tmp_path / "cuda.rank.json", RankRun(gpu="GPU")
    end = monotonic() + 60
    run = rank_all(run, file, GPU, lambda: opened(tmp_path), 3, end, tasks=SMALL)
    assert [task.name for task in run.tasks] == list(SMALL) and not run.failed
    assert all(len(task.timed) >= 2 for task in run.tasks), [task.line for task in run.tasks]
    assert RankRun(gpu="GPU").resumed(file) == run

    def never() -> GpuRunner:
        raise AssertionError("all was measured")

    rank_all(run, file, GPU, never, 3, end, tasks=SMALL)
    with pytest.raises(ForeignFile, match="are of GPU by .*, not of T4 by"):
        RankRun(gpu="T4").resumed(file)
    file.write_text("[]")
    with pytest.raises(ForeignFile, match="has no result"):
        RankRun(gpu="GPU").resumed(file)


def test_tasks_that_were_cut_are_measured_again(tmp_path: Path) -> None:
    file, sums = tmp_path / "a.json", {"sums": SMALL["sums"]}
    cut = Predicted(steps="", predicted_s=1.0, kind="cut")
    run = RankRun(gpu="GPU", tasks=[Ranked(name="sums", programs=[cut])])
    assert "0 timed, 1 cut" in run.tasks[0].line and not run.failed
    rank_all(run, file, GPU, lambda: opened(tmp_path), 3, monotonic() + 60, tasks=sums)
    assert [task.is_whole for task in run.tasks] == [True] and run.tasks[0].timed


def test_a_task_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    def broken() -> list[object]:
        raise ValueError("no definition\nat all")

    run = rank_all(
        RankRun(gpu="GPU"), tmp_path / "a.json", GPU, lambda: opened(tmp_path), 3,
        monotonic() + 60, tasks={"broken": broken, "sums": SMALL["sums"]},  # type: ignore[dict-item]
    )  # fmt: skip
    assert run.failed and run.tasks[0].line == "broken: ValueError: no definition"
    assert run.tasks[1].timed


@pytest.mark.parametrize("name", TASKS)
def test_candidates_are_drawn_with_their_predictions(name: str) -> None:
    task = Task(ComputeDAG.of(TASKS[name]()), GPU, 1, name=name)
    drawn = drawn_candidates(task, 6, np.random.default_rng(0))
    assert len(drawn) >= 4 and all(0 < seconds < 10 for _, seconds in drawn)


def test_the_share_of_the_best_that_are_chosen() -> None:
    def program(predicted: float, measured: float) -> Predicted:
        kind = "ok" if math.isfinite(measured) else "build_error"
        return Predicted(steps="", predicted_s=predicted, measured_s=measured, kind=kind)

    ranked = Ranked(name="a", programs=[program(n, 2.0 * n) for n in range(1, 21)])
    assert ranked.correlation == pytest.approx(1.0) and ranked.found == (2, 2)
    ranked.programs = [program(n, 21.0 - n) for n in range(1, 21)]
    assert ranked.correlation == pytest.approx(-1.0) and ranked.found == (0, 2)
    ranked.programs.append(program(1.0, math.inf))
    assert ranked.found == (0, 2) and "20 timed, 1 build_error" in ranked.line
    assert Ranked.model_validate_json(ranked.model_dump_json()) == ranked
