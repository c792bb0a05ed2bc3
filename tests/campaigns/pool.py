"""Runs cases in processes that may crash or hang: either is a failure of the case they were at."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess

from ansorpy.errors import DeviceLost
from tests.campaigns.campaign import Campaign, Failure, Outcome, Tally, run_case

__all__ = ["Ended", "ended", "run"]

# Processes are forks of one that has imported all campaigns, and nothing else has happened to it.
_CLEAN = multiprocessing.get_context("forkserver")
_CLEAN.set_forkserver_preload(["tests.campaigns.catalogue"])
_LEFT_S = 5.0  # that a process gets to end by itself


@dataclass(frozen=True)
class Ended:
    """What case *number* saw, or the *error* with which it failed."""

    number: int
    tally: Tally
    error: str


def run(
    name: str, campaign: Campaign, seed: int, numbers: Iterator[int], jobs: int, until_s: float
) -> Outcome:
    """Run the cases *numbers* of *campaign* in *jobs* processes until *until_s* has passed.

    The outcome has the campaign's *name*.
    """
    began = time.monotonic()
    outcome = Outcome(name, seed)
    for case in ended(campaign, seed, numbers, jobs, until_s):
        outcome.cases += 1
        if case.error:
            outcome.failures.append(Failure(case.number, case.error))
        else:
            outcome.tally.add(case.tally)
    outcome.seconds = time.monotonic() - began
    return outcome


def ended(
    campaign: Campaign, seed: int, numbers: Iterator[int], jobs: int, until_s: float
) -> Iterator[Ended]:
    """The cases *numbers* as they end, in any order; none begins after *until_s*."""
    began = time.monotonic()
    cores = sorted(os.sched_getaffinity(0))
    workers = [_Worker(campaign, seed, cores[n % len(cores)]) for n in range(jobs)]
    try:
        for worker in workers:
            worker.start(numbers)
        while busy := [worker for worker in workers if worker.number is not None]:
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                if worker.pipe in ready or worker.is_late:
                    yield worker.finish()
                    is_over = time.monotonic() - began >= until_s
                    worker.start(iter(()) if is_over else numbers)
    finally:
        for worker in workers:
            worker.close()


@dataclass
class _Worker:
    campaign: Campaign
    seed: int
    core: int
    """Where it runs, if the campaign wants that."""
    number: int | None = None
    """The case it is at."""
    began: float = 0.0
    pipe: Connection = field(init=False)
    _process: ForkServerProcess | None = field(default=None, init=False)

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.began > self.campaign.limit_s

    def start(self, numbers: Iterator[int]) -> None:
        """Begin the next case, if there is one."""
        self.number = next(numbers, None)
        self.began = time.monotonic()
        if self.number is None:
            return
        if self._process is None:
            self._fork()
        self.pipe.send(self.number)

    def finish(self) -> Ended:
        """How the case ended; a process that hangs or has died is replaced."""
        assert self.number is not None and self._process is not None
        tally, error, is_over = Tally(), "", False
        try:
            if not self.pipe.poll():
                raise TimeoutError
            tally, error, is_over = self.pipe.recv()
        except TimeoutError:
            error = f"runs for more than {self.campaign.limit_s:g} s"
            self._process.kill()
            is_over = True
        except (EOFError, ConnectionResetError):
            self._process.join(_LEFT_S)
            error = f"the process ended with exit code {self._process.exitcode}"
            is_over = True
        if is_over:
            self.close()
        return Ended(self.number, tally, error)

    def close(self) -> None:
        """End the process; the next case gets another one."""
        if self._process is not None:
            self.pipe.close()
            self._process.join(_LEFT_S)
            self._process.kill()
            self._process = None

    def _fork(self) -> None:
        self.pipe, theirs = _CLEAN.Pipe()
        self._process = _CLEAN.Process(
            target=_serve, args=(theirs, self.campaign, self.seed, self.core)
        )
        self._process.start()
        theirs.close()


def _serve(pipe: Connection, campaign: Campaign, seed: int, core: int) -> None:
    """Run the cases that come, until there are no more or the GPU's context is lost."""
    if campaign.pinned:
        os.sched_setaffinity(0, {core})
    is_over = False
    while not is_over:
        try:
            number = pipe.recv()
        except EOFError:
            return
        tally, error = Tally(), ""
        try:
            tally = run_case(campaign, seed, number)
        except Exception as raised:
            error, is_over = traceback.format_exc(limit=-6), isinstance(raised, DeviceLost)
        pipe.send((tally, error, is_over))
