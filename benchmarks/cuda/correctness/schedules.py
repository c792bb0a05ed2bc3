"""Random schedules on the GPU, many processes at a time; what was found is stored after each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from pydantic import BaseModel, ConfigDict

from benchmarks.common.command import say
from benchmarks.cuda.gpu_run import GpuRun
from tests.campaigns.campaign import Campaign, Tally, Worst
from tests.campaigns.device import DEVICE
from tests.campaigns.pool import Ended, ended

__all__ = ["Failed", "Schedules", "check_schedules"]

_EVERY_S = 2.0
"""Seconds between two writes of the file, unless a case failed."""


class Failed(BaseModel):
    """A case that failed: its number, the command that repeats it, and what was seen."""

    model_config = ConfigDict(extra="forbid")

    number: int
    command: str
    seen: str


class Schedules(GpuRun):
    """The cases that were run on one GPU, what was counted, and those that failed."""

    seed: int = 0
    cases: list[int] = []
    kinds: dict[str, int] = {}
    worst: dict[str, Worst] = {}
    failures: list[Failed] = []
    took_s: float = 0.0

    @property
    def made_with(self) -> str:
        return f"{super().made_with} and seed {self.seed}"

    @property
    def programs(self) -> int:
        """Programs that were compared."""
        return self.kinds.get("programs", 0)

    @property
    def line(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        worst = ", ".join(f"{kind}: {w.value:.2f}" for kind, w in sorted(self.worst.items()))
        return (
            f"{self.programs} schedules in {len(self.cases)} cases, seed {self.seed}, "
            f"{self.took_s:.0f} s, {len(self.failures)} cases failed ({kinds}; {worst})"
        )

    def add(self, case: Ended) -> None:
        """Count *case*; one that failed is to be run again another time."""
        if case.error:
            command = f"python -m tests.campaigns device --seed {self.seed} --only {case.number}"
            self.failures.append(Failed(number=case.number, command=command, seen=case.error))
        tally = Tally(worst=dict(self.worst))
        tally.kinds.update(self.kinds)
        tally.add(case.tally)
        self.kinds, self.worst = dict(tally.kinds), tally.worst
        self.cases.append(case.number)


def check_schedules(
    run: Schedules, file: Path, count: int, jobs: int, until_s: float,
    campaign: Campaign = DEVICE,
) -> Schedules:  # fmt: skip
    """Run cases of *campaign* until *count* schedules were compared, or *until_s* have passed.

    Cases that *run* has are not run again, except those that failed.
    """
    began, before, stored = monotonic(), run.took_s, monotonic()
    failed = {failure.number for failure in run.failures}
    run.failures, run.cases = [], [number for number in run.cases if number not in failed]
    done = set(run.cases)

    def numbers() -> Iterator[int]:
        waiting = itertools.chain(sorted(failed), itertools.count())
        for number in waiting:
            if run.programs >= count and number not in failed:
                return
            if number not in done:
                done.add(number)
                yield number

    for case in ended(campaign, run.seed, numbers(), jobs, until_s):
        run.add(case)
        run.took_s = before + monotonic() - began
        if case.error:
            say(f"schedules, case {case.number}: {case.error.strip().splitlines()[-1][:300]}")
        if case.error or monotonic() - stored > _EVERY_S:
            run.write(file)
            stored = monotonic()
    run.write(file)
    return run
