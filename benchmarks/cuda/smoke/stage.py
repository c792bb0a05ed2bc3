"""Run the checks, each in its own process, and store their outcomes.

python -m benchmarks.cuda.smoke.stage NAME      # one check, in this process
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import monotonic
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.common.command import say
from benchmarks.cuda.gpu_run import GpuRun
from benchmarks.cuda.smoke.checks import CHECKS
from benchmarks.cuda.smoke.machine import Skipped, SmokeGpu, real

__all__ = ["Checked", "Checks", "SmokeRun", "check_all", "check_one"]

Checks = Mapping[str, Callable[[SmokeGpu], str]]

_LIMIT_S = 60.0


class Checked(BaseModel):
    """The outcome of one check, and its reason."""

    model_config = ConfigDict(extra="forbid")

    name: str
    outcome: Literal["ok", "skipped", "failed"]
    said: str = ""
    took_s: float = 0.0

    @property
    def line(self) -> str:
        return f"{self.name}: {self.outcome}{self.said and ', ' + self.said} ({self.took_s:.0f} s)"


class SmokeRun(GpuRun):
    """All checks on one GPU."""

    checks: list[Checked] = []

    @property
    def failed(self) -> bool:
        return any(check.outcome == "failed" for check in self.checks)


def check_one(
    name: str, gpu: Callable[[], SmokeGpu] = real, checks: Checks | None = None
) -> Checked:
    """Run the check *name*, one of *checks* (the smoke stage's), in this process."""
    begin = monotonic()
    try:
        outcome, said = "ok", (checks or CHECKS)[name](gpu())
    except Skipped as reason:
        outcome, said = "skipped", str(reason)
    except Exception as error:  # the other checks run whatever happens in this one
        outcome, said = "failed", f"{type(error).__name__}: {error}".strip().replace("\n", " | ")
    return Checked.model_validate(
        {"name": name, "outcome": outcome, "said": said[:400], "took_s": monotonic() - begin}
    )


def check_all(
    run: SmokeRun, file: Path, names: Sequence[str] | None = None, *, again: bool = False,
    module: str = "benchmarks.cuda.smoke.stage", limit_s: float = _LIMIT_S, jobs: int = 1,
    end: float = math.inf,
) -> SmokeRun:  # fmt: skip
    """Run the checks that are not ok in *run*; print and store each outcome.

    Args:
        file: Written after each check.
        names: The checks; default: the smoke stage's.
        again: Also run checks that were ok before.
        module: The module that runs one check in a new process and prints its outcome as JSON.
        limit_s: Seconds that one check may take.
        jobs: Number of checks at a time; each has its share of the cores.
        end: Moment (``time.monotonic``) after which no check begins, and at which all end; what
            has no outcome then waits for another time.
    """
    wanted = list(CHECKS if names is None else names)
    held = {c.name: c for c in run.checks if c.outcome == "ok" and not again}
    run.waiting = [name for name in wanted if name not in held]
    run.write(file)

    def found(name: str) -> Checked | None:
        left_s = min(limit_s, end - monotonic())
        if name in held or left_s <= 0:
            return held.get(name)
        checked = _in_a_process([sys.executable, "-m", module, name], name, left_s)
        if checked is None and left_s == limit_s:
            said = f"no answer within {limit_s:.0f} s"
            return Checked(name=name, outcome="failed", said=said, took_s=limit_s)
        return checked

    shares = _shares(jobs)
    with ThreadPoolExecutor(
        jobs, initializer=lambda: os.sched_setaffinity(0, shares.pop())
    ) as pool:
        running = {pool.submit(found, name): name for name in wanted}
        for done in as_completed(running) if jobs > 1 else running:
            checked, name = done.result(), running[done]
            if checked is None:
                say(f"{name}: no time left")
                continue
            say(checked.line + (" before" if name in held else ""))
            run.checks = [c for c in run.checks if c.name != name] + [checked]
            run.waiting = [other for other in run.waiting if other != name]
            run.write(file)
    return run


def _shares(jobs: int) -> list[set[int]]:
    """The cores of each of *jobs* threads, which the processes that they start inherit."""
    cores = sorted(os.sched_getaffinity(0))
    return [set(cores[n::jobs]) or {cores[n % len(cores)]} for n in range(jobs)]


def _in_a_process(command: Sequence[str], name: str, limit_s: float) -> Checked | None:
    """The outcome that *command* prints; None if it ends, with all it started, after *limit_s*."""
    begin = monotonic()
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        answer, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None
    try:
        return Checked.model_validate_json(answer.strip().rpartition("\n")[2])
    except ValidationError:
        last = errors.strip().rpartition("\n")[2]
        said = f"the process ended with {process.returncode}: {last}"[:400]
        return Checked(name=name, outcome="failed", said=said, took_s=monotonic() - begin)


if __name__ == "__main__":
    print(check_one(sys.argv[1]).model_dump_json())
