"""A batch of candidates that are built and run at the same time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any

from ansorpy.deadline import left_s, until
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.client import RunClient
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State

__all__ = ["Arrivals", "Finished", "GpuBatch", "Submit"]

Finished = tuple[int, Built | MeasureResult]
"""The number of a candidate, and its code or the reason why there is none."""
Submit = Callable[[RunClient, State, Built, float | None], Future[MeasureResult]]
"""Measures a candidate on a client's GPU in another thread; the last argument is the incumbent."""


class Arrivals:
    """Takes builds from *each* in a thread of its own, one at a time; a context manager."""

    def __init__(self, each: Iterator[Finished]) -> None:
        self._each = each
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ansorpy-gpu-builds")
        self._moment = time.monotonic() + left_s()
        self.next: Future[Finished | None] | None = None
        """The next build; its result is None when there are no more.  None once that is known."""

    def __enter__(self) -> Arrivals:
        self.next = self._thread.submit(self._advance)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def take(self) -> Finished | None:
        """The build that has arrived; begins to wait for another."""
        assert self.next is not None
        found = self.next.result()
        self.next = None if found is None else self._thread.submit(self._advance)
        return found

    def _advance(self) -> Finished | None:
        with until(self._moment):
            return next(self._each, None)


class GpuBatch:
    """Candidates of one task that are distributed to GPUs in the order in which they are built.

    The observer is called in the caller's thread.
    """

    def __init__(
        self,
        candidates: Sequence[State],
        submit: Submit,
        incumbent_s: float | None,
        observer: Observer | None,
    ) -> None:
        self.candidates = candidates
        self.submit = submit
        self.incumbent_s = incumbent_s
        self.observer = observer
        self.results: dict[int, MeasureResult] = {}
        self._builds: dict[int, Built | MeasureResult] = {}

    def run(self, clients: Sequence[RunClient], each: Iterator[Finished]) -> list[MeasureResult]:
        """Return all results, in the candidates' order."""
        waiting: deque[int] = deque()
        free = list(clients)
        busy: dict[Future[MeasureResult], tuple[int, RunClient]] = {}
        with closing(_closable(each)) as builds, Arrivals(builds) as arrivals:
            while arrivals.next or waiting or busy:
                while waiting and free:
                    index = waiting.popleft()
                    future = self._start(index, free[0])
                    if future is not None:
                        busy[future] = (index, free.pop(0))
                with profiled(Activity.RUN if busy else Activity.BUILD):
                    coming: list[Future[Any]] = [arrivals.next] if arrivals.next else []
                    wait([*coming, *busy], return_when=FIRST_COMPLETED)
                if arrivals.next and arrivals.next.done() and (found := arrivals.take()):
                    self._builds[found[0]] = found[1]
                    waiting.append(found[0])
                for future in [future for future in busy if future.done()]:
                    index, client = busy.pop(future)
                    free.append(client)
                    self._finish(index, future.result())
        return [self.results[index] for index in range(len(self.candidates))]

    def _start(self, index: int, client: RunClient) -> Future[MeasureResult] | None:
        """Start candidate *index*; None when its result is known without running it."""
        state, build = self.candidates[index], self._builds[index]
        known = None if self.observer is None else self.observer.started(state)
        if known is not None:
            self._note(index, known)
            return None
        if isinstance(build, MeasureResult):
            self._finish(index, build)
            return None
        return self.submit(client, state, build, self.incumbent_s)

    def _finish(self, index: int, result: MeasureResult) -> None:
        self._note(index, result)
        if self.observer is not None:
            build = self._builds[index]
            built = build if isinstance(build, Built) else None
            self.observer.ended(TrialEnd(self.candidates[index], result, built))

    def _note(self, index: int, result: MeasureResult) -> None:
        self.results[index] = result
        if result.ok:
            self.incumbent_s = min(result.median_s, self.incumbent_s or result.median_s)


def _closable(each: Iterator[Finished]) -> Generator[Finished]:
    """*each* as a generator: closing it ends what *each* waits for."""
    yield from each
