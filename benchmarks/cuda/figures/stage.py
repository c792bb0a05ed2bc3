"""The stage *figures*: its steps one after the other, within a time, stored after each."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import ConfigDict

from benchmarks.common.command import say
from benchmarks.common.compared import Stored
from benchmarks.cuda.figures.base import FigureSettings, Step
from benchmarks.cuda.gpu_run import GpuRun

__all__ = ["FiguresRun", "StepResult", "is_lost", "line_of", "measure_all", "search_s"]

_LEAST_S = 10.0
"""Seconds of a search that are worth it, unless its step has less."""


class StepResult(Stored):
    """One step's result: milliseconds of our call and of torch's, or the reason for their absence.

    ``dtype`` is the inputs' type and ``sums`` that of sums; TF32 is off in both engines.  ``peer``
    is what of torch was called, ``rate`` how many candidates a minute were measured.  ``trace`` is
    the traceback of a failure; ``note`` is a remark on the figures.
    """

    model_config = ConfigDict(frozen=False)

    name: str
    wanted: float
    ours_ms: float | None = None
    peer_ms: float | None = None
    took_s: float = 0.0
    failure: str = ""
    trace: str = ""
    note: str = ""
    dtype: str = ""
    sums: str = ""
    tf32: bool = False
    peer: str = ""
    rate: float | None = None

    @property
    def ratio(self) -> float | None:
        """torch's time divided by ours."""
        return None if not self.ours_ms or not self.peer_ms else self.peer_ms / self.ours_ms


class FiguresRun(GpuRun):
    """The results of all steps on one GPU; ``software`` has the versions of what they use."""

    software: dict[str, str]
    trials: int
    results: list[StepResult] = []

    @property
    def made_with(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.software.items())
        return f"{super().made_with}, {versions}, {self.trials} trials a case"


def measure_all(
    chosen: Sequence[Step],
    torch: Any,
    settings: FigureSettings,
    run: FiguresRun,
    file: Path,
    end: float,
    *,
    again: bool = False,
) -> list[str]:
    """Measure the steps that *run* does not have, until the moment *end*; keep *file* up to date.

    The remaining time is divided so that every step can begin, or as many as get the least time
    that a search is worth.  Returns the names of the steps that began; it stops if one of them lost
    the GPU's context.
    """
    held = {result.name for result in run.results if not result.failure}
    waiting = [step for step in chosen if again or step.name not in held]
    tried: list[str] = []
    run.waiting = [step.name for step in waiting]
    run.write(file)
    while waiting:
        left_s = end - monotonic()
        limit_s = search_s(waiting, left_s)
        step = waiting.pop(0)
        if limit_s is None:
            say(f"{step.name}: no time left; run the same command again")
            continue
        result = _measured(step, torch, settings, limit_s)
        say(line_of(result))
        run.results = [r for r in run.results if r.name != step.name] + [result]
        run.waiting.remove(step.name)
        run.write(file)
        tried.append(step.name)
        if result.failure and is_lost(torch):
            return tried
    return tried


def search_s(waiting: Sequence[Step], left_s: float) -> float | None:
    """Seconds that the first of *waiting* may search, if all get the same share of their limits.

    If there is too little time for all, it gets :data:`_LEAST_S` besides the time of its reference,
    or its limit if that is less; None if not even that is left.
    """
    first = waiting[0]
    first_s = left_s - first.beside_s
    least_s = min(first.limit_s, _LEAST_S + first.reference_s)
    if first_s < least_s:
        return None
    whole = sum(step.limit_s for step in waiting)
    share = (left_s - sum(step.beside_s for step in waiting)) / whole
    return min(first_s, max(least_s, first.limit_s * min(1.0, share)))


def _measured(step: Step, torch: Any, settings: FigureSettings, limit_s: float) -> StepResult:
    result = StepResult(name=step.name, wanted=step.wanted)
    begin = monotonic()
    try:
        figures = step.measure(torch, settings, limit_s)
        result.ours_ms, result.peer_ms = figures.ours_s * 1e3, figures.peer_s * 1e3
        result.note, result.peer, result.rate = figures.note, figures.peer, figures.rate
        result.dtype, result.sums = figures.dtype, figures.sums
    except Exception as error:  # the other steps are measured whatever happens in this one
        said = f"{type(error).__name__}: {error}"
        result.failure, result.trace = said.splitlines()[0], traceback.format_exc()
    result.took_s = monotonic() - begin
    return result


def is_lost(torch: Any) -> bool:
    """True when this process can no longer use the GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def line_of(result: StepResult) -> str:
    """The result in one line."""
    if result.ratio is None:
        return f"{result.name}: {result.failure}"
    rate = "" if result.rate is None else f"; {result.rate:.0f} a minute"
    peer = f"torch {result.peer}".strip()
    types = f" [{result.dtype}, sums {result.sums}]" if result.dtype else ""
    return (
        f"{result.name}{types}: {result.ours_ms:.4f} ms, {peer} {result.peer_ms:.4f} ms, ratio "
        f"{result.ratio:.2f} of {result.wanted:.2f} ({result.took_s:.0f} s){rate}"
        f"{result.note and '; ' + result.note}"
    )
