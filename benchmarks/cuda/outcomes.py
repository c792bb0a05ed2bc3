"""What the steps measured: one after the other, within a time, stored after each."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.errors import ForeignFile
from benchmarks.common.command import say, write_whole
from benchmarks.cuda.figures.base import Settings, Step

__all__ = [
    "Outcome", "Run", "earlier_outcomes", "is_lost", "line_of", "read_run", "search_s",
    "work_through",
]  # fmt: skip

_LEAST_S = 10.0
"""Seconds of a search that are worth it, unless its step has less."""


class Outcome(BaseModel):
    """One step's result: milliseconds of our call and of torch's, or the reason for their absence.

    ``dtype`` is the inputs' type and ``sums`` that of sums; TF32 is off in both engines.  ``peer``
    is what of torch was called, ``rate`` how many candidates a minute were measured.  ``trace`` is
    the traceback of a failure; ``note`` is a remark on the figures.
    """

    model_config = ConfigDict(extra="forbid")

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


class Run(BaseModel):
    """All results of one machine."""

    model_config = ConfigDict(extra="forbid")

    machine: dict[str, str]
    trials: int
    outcomes: list[Outcome] = []


def work_through(
    chosen: Sequence[Step],
    torch: Any,
    settings: Settings,
    run: Run,
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
    held = {outcome.name for outcome in run.outcomes if not outcome.failure}
    waiting = [step for step in chosen if again or step.name not in held]
    tried: list[str] = []
    while waiting:
        left_s = end - monotonic()
        limit_s = search_s(waiting, left_s)
        step = waiting.pop(0)
        if limit_s is None:
            say(f"{step.name}: no time left; run the same command again")
            continue
        outcome = _measured(step, torch, settings, limit_s)
        say(line_of(outcome))
        run.outcomes = [o for o in run.outcomes if o.name != step.name] + [outcome]
        write_whole(file, run.model_dump_json(indent=2))
        tried.append(step.name)
        if outcome.failure and is_lost(torch):
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


def _measured(step: Step, torch: Any, settings: Settings, limit_s: float) -> Outcome:
    outcome = Outcome(name=step.name, wanted=step.wanted)
    begin = monotonic()
    try:
        figures = step.measure(torch, settings, limit_s)
        outcome.ours_ms, outcome.peer_ms = figures.ours_s * 1e3, figures.peer_s * 1e3
        outcome.note, outcome.peer, outcome.rate = figures.note, figures.peer, figures.rate
        outcome.dtype, outcome.sums = figures.dtype, figures.sums
    except Exception as error:  # the other steps are measured whatever happens in this one
        said = f"{type(error).__name__}: {error}"
        outcome.failure, outcome.trace = said.splitlines()[0], traceback.format_exc()
    outcome.took_s = monotonic() - begin
    return outcome


def is_lost(torch: Any) -> bool:
    """True when this process can no longer use the GPU."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def earlier_outcomes(held: Run, run: Run) -> list[Outcome]:
    """The results in *held*, which must be from the same GPU.

    Raises:
        ForeignFile: They are from another GPU.
    """
    if held.machine["gpu"] != run.machine["gpu"]:
        raise ForeignFile(
            f"the results are of {held.machine['gpu']}, not of {run.machine['gpu']}",
            hint="name another file with --json",
        )
    return held.outcomes


def read_run(file: Path) -> Run:
    try:
        return Run.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ForeignFile(f"{file} has no results of this benchmark: {error}") from None


def line_of(outcome: Outcome) -> str:
    """The outcome in one line."""
    if outcome.ratio is None:
        return f"{outcome.name}: {outcome.failure}"
    rate = "" if outcome.rate is None else f"; {outcome.rate:.0f} a minute"
    peer = f"torch {outcome.peer}".strip()
    types = f" [{outcome.dtype}, sums {outcome.sums}]" if outcome.dtype else ""
    return (
        f"{outcome.name}{types}: {outcome.ours_ms:.4f} ms, {peer} {outcome.peer_ms:.4f} ms, ratio "
        f"{outcome.ratio:.2f} of {outcome.wanted:.2f} ({outcome.took_s:.0f} s){rate}"
        f"{outcome.note and '; ' + outcome.note}"
    )
