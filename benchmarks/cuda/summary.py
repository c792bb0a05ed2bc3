"""What all stages found, read from their files, in few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean

from benchmarks.cuda.correctness.schedules import Schedules
from benchmarks.cuda.figures.stage import FiguresRun, StepResult, line_of
from benchmarks.cuda.gpu_run import GpuRun
from benchmarks.cuda.rank import RankRun
from benchmarks.cuda.smoke.stage import SmokeRun

__all__ = ["file_of", "summary"]

_LONGEST, _DETAIL = 150, 110
"""Characters of a line, and of one that is indented."""
_MOST = 8
"""Cases that failed of which the summary says why."""


def file_of(file: Path, stage: str) -> Path:
    """Where *stage* writes, given the file of the figures."""
    return file.with_name(f"{file.stem}.{stage}.json")


def summary(file: Path) -> tuple[list[str], bool]:
    """The lines for the figures in *file* and the stages beside it; whether all ran and passed.

    Raises:
        ForeignFile: *file* has no figures.
    """
    lines: list[str] = []
    is_sound = True
    for stage in ("smoke", "correctness"):
        if (beside := file_of(file, stage)).exists():
            checks = SmokeRun.read(beside, "cuda")
            lines += _checks(stage, checks)
            is_sound &= not (checks.failed or checks.waiting)
    if (beside := file_of(file, "schedules")).exists():
        schedules = Schedules.read(beside, "cuda")
        lines += _schedules(schedules)
        is_sound &= not schedules.failures
    if (beside := file_of(file, "rank")).exists():
        ranks = RankRun.read(beside, "cuda")
        lines += [f"rank {task.line}" for task in ranks.tasks]
        lines += _waiting(ranks)
        is_sound &= not (ranks.failed or ranks.waiting)
    if file.exists() or not lines:
        run = FiguresRun.read(file, "cuda")
        lines += _figures(run)
        is_sound &= not (run.waiting or any(result.failure for result in run.results))
    return [line[: _DETAIL if line.startswith(" ") else _LONGEST] for line in lines], is_sound


def _checks(stage: str, run: SmokeRun) -> Iterator[str]:
    counts = {kind: sum(c.outcome == kind for c in run.checks) for kind in ("ok", "skipped")}
    failed = [check for check in run.checks if check.outcome == "failed"]
    took = sum(check.took_s for check in run.checks)
    yield (
        f"{stage} on {run.gpu}: {counts['ok']} ok, {counts['skipped']} skipped, "
        f"{len(failed)} failed, {took:.0f} s of processes"
    )
    yield from (f"  {check.line}" for check in run.checks if check.outcome != "ok")
    yield from _waiting(run)


def _waiting(run: GpuRun) -> Iterator[str]:
    if run.waiting:
        yield f"  no time for {len(run.waiting)}: {', '.join(run.waiting)}"


def _schedules(run: Schedules) -> Iterator[str]:
    whole = run.line
    yield from (whole[n : n + _LONGEST] for n in range(0, len(whole), _LONGEST))
    for failure in run.failures[:_MOST]:
        yield f"  case {failure.number}: {failure.seen.strip().splitlines()[-1]}"


def _figures(run: FiguresRun) -> Iterator[str]:
    yield ", ".join([f"gpu {run.gpu}", *(f"{name} {v}" for name, v in run.software.items())])
    suite = [result for result in run.results if result.name.startswith("ops.")]
    yield from (line_of(result) for result in run.results if result not in suite)
    for dtype, group in groupby(sorted(suite, key=_dtype), key=_dtype):
        yield from _suite(dtype, list(group))
    yield from _waiting(run)


def _dtype(result: StepResult) -> str:
    return result.name.split(".")[1]


def _suite(dtype: str, results: Sequence[StepResult]) -> Iterator[str]:
    """The geometric mean of the suite, of each family, and why some of it has no figure."""
    ratios: dict[str, list[float]] = {}
    for result in results:
        if result.ratio:
            ratios.setdefault(result.name.split(".")[2], []).append(result.ratio)
    every = [ratio for family in ratios.values() for ratio in family]
    failed = [result for result in results if result.failure]
    if every:
        yield (
            f"the suite in {dtype}: {geometric_mean(every):.2f}, geometric mean of {len(every)} "
            f"cases of {results[0].wanted:.2f}, {len(failed)} failed"
        )
        families = [f"{name} {geometric_mean(found):.2f}" for name, found in ratios.items()]
        for n in range(0, len(families), 12):
            yield "  " + ", ".join(families[n : n + 12])
    yield from (f"  {result.name}: {result.failure}" for result in failed[:_MOST])
