"""Carry out the jobs of a study that have no outcome yet, within a budget of wall-clock time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from time import monotonic

from ansorpy.errors import AnsorpyError, MissingDependency
from ansorpy.measure.probe.others import OtherProcesses
from ansorpy.measure.workers.processes import die_with_parent
from benchmarks.study.outcomes import Outcome, Outcomes, Value

__all__ = ["Job", "carry_out"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One experiment.

    Args:
        key: Its name, of parts that slashes separate; outcomes are kept by it.
        work: Makes its value; it is sent to another process, so it is a partial of a function.
        alone: Whether it times programs, so that nothing else may run beside it.
        about_s: Seconds that it takes at least; it does not begin when fewer are left.
    """

    key: str
    work: Callable[[], Value]
    alone: bool = False
    about_s: float = 0.0


def carry_out(
    jobs: Sequence[Job], outcomes: Outcomes, budget_s: float, processes: int, say: Say
) -> int:
    """Carry out *jobs* in their order; return how many are left when the budget is spent.

    Those that time programs run one after another, each in a process of its own, so that none finds
    what an earlier one has loaded; the others run in *processes* at a time.
    """
    ends_at = monotonic() + budget_s
    pending = [job for job in jobs if job.key not in outcomes]
    say(f"{len(jobs) - len(pending)} of {len(jobs)} jobs are done")
    beside = [job for job in pending if not job.alone]
    left = _together(beside, outcomes, ends_at, processes, say)
    alone = [job for job in pending if job.alone]
    for number, job in enumerate(alone):
        if monotonic() + job.about_s > ends_at:
            return left + len(alone) - number  # later ones may need what it makes
        with _pool(1) as pool:
            left += not _keep(job, pool.submit(_timed, job), outcomes, monotonic(), say)
    return left


def _together(
    jobs: Sequence[Job], outcomes: Outcomes, ends_at: float, processes: int, say: Say
) -> int:
    """Carry out jobs that time nothing, several at once; return how many are left."""
    queue = iter(jobs)
    begun = missing = 0
    if not jobs:
        return 0
    with _beside_each_other(processes) as pool:
        running: dict[Future[_Found], tuple[Job, float]] = {}
        while True:
            for job in _next(queue, 2 * processes - len(running), ends_at):
                running[pool.submit(_timed, job)] = (job, monotonic())
                begun += 1
            if not running:
                return len(jobs) - begun + missing
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                say("a process ended without an answer; running were: " + ", ".join(
                    job.key for job, _ in running.values()
                ))  # fmt: skip
                return len(jobs) - begun + missing + len(running)
            for future in done:
                job, began = running.pop(future)
                missing += not _keep(job, future, outcomes, began, say)


def _next(queue: Iterator[Job], n: int, ends_at: float) -> Iterator[Job]:
    """The next *n* jobs that may still begin."""
    for _ in range(n):
        if monotonic() >= ends_at or (job := next(queue, None)) is None:
            return
        yield job


@dataclass(frozen=True)
class _Found:
    value: Value
    seconds: float
    others: float
    """Cores that other processes kept busy meanwhile, a mean."""


def _timed(job: Job) -> _Found:
    began, others = monotonic(), OtherProcesses()
    value = job.work()
    return _Found(value, monotonic() - began, others.busy_cores() if job.alone else 0.0)


def _keep(job: Job, future: Future[_Found], outcomes: Outcomes, began: float, say: Say) -> bool:
    """Write what a job found; that it failed, or that its process died, is an outcome too.

    False if it needs what is not installed, so that it is left for a later call.
    """
    found, reason = None, ""
    try:
        found = future.result()
    except MissingDependency as error:
        say(f"{job.key}: {error.message}" + (f"; {error.hint}" if error.hint else ""))
        return False
    except AnsorpyError as error:
        reason = error.message
    except BrokenProcessPool:
        reason = "its process ended without an answer"
    except Exception as error:  # a part that users registered may raise anything
        reason = f"{type(error).__name__}: {error}"
    seconds = monotonic() - began if found is None else found.seconds
    outcome = Outcome.now(
        job.key, outcomes.conditions, value=found and dict(found.value), error=reason,
        seconds=seconds, others=round(found.others, 3) if found else 0.0,
    )  # fmt: skip
    outcomes.add(outcome)
    say(f"{job.key}: {reason or f'{seconds:.1f} s'}")
    return True


def _pool(processes: int) -> ProcessPoolExecutor:
    """A pool whose processes end with this one, however it ends."""
    spawn = get_context("spawn")
    return ProcessPoolExecutor(processes, spawn, die_with_parent, (os.getpid(),))


def _beside_each_other(processes: int) -> Executor:
    """A pool for jobs that time nothing; a single one needs no process of its own."""
    return _pool(processes) if processes > 1 else ThreadPoolExecutor(1)
