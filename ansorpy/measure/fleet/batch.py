"""Distribute one batch of candidates over the nodes of a fleet: building, running, repeating.

Each node builds chunks of candidates, and runs, one by one, what any node has built; if some nodes
offer to build, they do all the building.  When a node is lost, its candidates return to the queue;
each candidate is still started once and gets one result.  A candidate that seems a new best on any
node is run again on the task's *home* node, and that time counts, so the best times of a task all
come from one machine.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansorpy.deadline import left_s
from ansorpy.errors import VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import NodeHung, NodeLost, NodeUnfit
from ansorpy.measure.fleet.calls import Calls
from ansorpy.measure.fleet.patience import within_s
from ansorpy.measure.fleet.roster import Roster
from ansorpy.measure.fleet.wire import Work, read_answer, read_hello, read_results, write_work
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State

__all__ = ["FleetBatch"]

_LOG = logging.getLogger(__name__)


@dataclass
class _Node:
    """A node that takes part, and the candidates in its pending call.

    ``builders`` is 0 until the node has answered a greeting.
    """

    times: bool
    builders: int = 0
    asked: list[int] = field(default_factory=list)
    take: Callable[[bytes], None] = lambda answer: None
    """What to do with the answer to its pending call."""


class FleetBatch:
    """Measures *candidates* of *task*; see :meth:`run`.

    A candidate is queued, then ready to run (its code is known), then done; ``_confirm`` has those
    that ran, with their first result, and are to run again on the home node.
    """

    def __init__(
        self,
        roster: Roster,
        task: Task,
        candidates: Sequence[State],
        incumbent_s: float | None,
        observer: Observer | None,
        *,
        home: str | None,
        keep: Callable[[Built], None],
    ) -> None:
        self.home = home
        self._roster = roster
        self._patience = roster.patience
        self._task = task
        self._candidates = candidates
        self._best_s = incumbent_s
        self._observer = observer
        self._keep = keep
        self._results: dict[int, MeasureResult] = {}
        self._queue = deque(range(len(candidates)))
        self._code: dict[int, Built] = {}
        self._ready: deque[int] = deque()
        self._confirm: dict[int, MeasureResult] = {}
        self._started: set[int] = set()
        self._losses = [0] * len(candidates)
        self._nodes: dict[str, _Node] = {}
        self._failures: dict[str, int] = {}
        self._said: list[str] = []
        self._look_at = 0.0

    def run(self) -> list[MeasureResult]:
        """Return one result per candidate, in order.

        Raises:
            VerificationFailed: A node's reference output is wrong, so nothing can be checked.
            MissingDependency: No node offers the task's kind; all were lost and none came back.
        """
        with Calls(self._roster.fleet) as self._calls:
            while len(self._results) < len(self._candidates):
                if left_s() <= 0 and self._is_over():
                    break
                self._have_nodes()
                for name, node in self._nodes.items():
                    if name not in self._calls.busy:
                        self._give(name, node)
                with profiled(Activity.RUN if self._calls.doing("measure") else Activity.BUILD):
                    answered = self._calls.wait(self._patience.look_s)
                for name in answered:
                    self._take(name)
        return [self._results[index] for index in range(len(self._candidates))]

    # Nodes joining and leaving

    def _have_nodes(self) -> None:
        """Look for new nodes periodically; if none can time, wait for lost ones to return."""
        if self._timing and time.monotonic() < self._look_at:
            return
        self._join()
        if not self._timing and left_s() > 0:
            if not self._roster.wait(self._task, self._excluded) and left_s() > 0:
                raise self._roster.refused(self._task, self._said)
            self._join()
        self._look_at = time.monotonic() + self._patience.look_s

    @property
    def _timing(self) -> list[str]:
        """The nodes that time, in the order they joined."""
        return [name for name, node in self._nodes.items() if node.times]

    @property
    def _excluded(self) -> list[str]:
        """Nodes that failed too often in this batch."""
        most = self._patience.failures
        return [name for name, failures in self._failures.items() if failures >= most]

    def _join(self) -> None:
        """Add the nodes that are available now, except those that keep failing."""
        there = self._roster.nodes(self._task)
        for name in (*there, *self._roster.builders(self._task)):
            if name not in self._excluded:
                self._nodes.setdefault(name, _Node(times=name in there))
        self._elect()

    def _elect(self) -> None:
        if self.home not in self._nodes:
            self.home = next(iter(self._timing), None)

    def _leave_out(self, name: str, reason: str, *, is_unfit: bool = False) -> None:
        """Drop *name* for now; *is_unfit*: until the batch ends, which no candidate caused."""
        failures = self._failures.get(name, 0) + 1
        self._failures[name] = self._patience.failures if is_unfit else failures
        place = self._roster.fleet.place(name)
        self._said.append(f"{place}: {reason}")
        _LOG.warning("node %s is left out: %s", place, reason)
        self._give_back(name, reason, is_blamed=not is_unfit)

    def _give_back(self, name: str, reason: str, *, is_blamed: bool = True) -> None:
        """Drop *name* and return its candidates to their queues; its repeats go to the next home.

        *is_blamed*: the candidates may have caused the loss.
        """
        node = self._nodes.pop(name)
        self._calls.drop(name)
        for index in reversed(node.asked):
            self._losses[index] += is_blamed
            if self._losses[index] >= self._patience.losses:
                what = f"{self._losses[index]} nodes were lost while it was under way: {reason}"
                if self._start(index):
                    self._settle(index, MeasureResult(TrialKind.CRASH, reason=what))
            elif index not in self._confirm:
                (self._ready if index in self._code else self._queue).appendleft(index)
        self._elect()

    def _is_over(self) -> bool:
        """Cancel waiting candidates, as time is up; returns True when none is pending.

        Pending ones are answered soon, as their nodes know the deadline.
        """
        if left_s() <= -self._patience.late_s:
            for name in [name for name, node in self._nodes.items() if node.asked]:
                self._leave_out(name, "no answer when the time was up", is_unfit=True)
        under_way = {index for node in self._nodes.values() for index in node.asked}
        self._queue.clear()
        self._ready.clear()
        for index in range(len(self._candidates)):
            if index not in under_way and index not in self._results and self._start(index):
                self._settle(index, out_of_time())
        return not under_way

    # Calling nodes

    def _give(self, name: str, node: _Node) -> None:
        """Call an idle node to greet, to repeat, to run or to build, if there is anything to do."""
        if not node.builders:
            node.take = lambda answer: setattr(node, "builders", read_hello(answer))
            self._calls.start(name, "hello", limit_s=self._patience.grace_s)
        elif node.times and (index := self._next_to_run(name)) is not None:
            self._measure(name, node, index)
        elif self._queue and node in self._building:
            self._build(name, node)

    def _build(self, name: str, node: _Node) -> None:
        """Have *node* build the next chunk."""
        node.asked = [self._queue.popleft() for _ in range(self._share(node))]
        node.take = lambda answer: self._built(node, answer)
        states = [self._candidates[index] for index in node.asked]
        message = write_work(Work(self._task, states, within_s=within_s()))
        limit_s = self._roster.deadlines.build_s(len(states), node.builders)
        self._calls.start(name, "build", message, limit_s=limit_s)

    def _measure(self, name: str, node: _Node, index: int) -> None:
        """Have *node* run a candidate."""
        node.asked = [index]
        begin = time.monotonic()
        node.take = lambda answer: self._measured(name, node, answer, time.monotonic() - begin)
        code, states = self._code[index], [self._candidates[index]]
        work = Work(self._task, states, self._best_s, built=code, within_s=within_s())
        limit_s = self._roster.deadlines.run_s(self._task, self._best_s)
        self._calls.start(name, "measure", write_work(work), limit_s=limit_s)

    def _next_to_run(self, name: str) -> int | None:
        """Next candidate to run on a node: a repeat if it is the home, or one that is ready."""
        if self._confirm and name == self.home:
            return next(iter(self._confirm))
        while self._ready:
            if self._start(index := self._ready.popleft()):
                return index
        return None

    @property
    def _building(self) -> list[_Node]:
        """Nodes that only build, or all nodes if there are none."""
        nodes = list(self._nodes.values())
        return [node for node in nodes if not node.times] or nodes

    def _share(self, node: _Node) -> int:
        """Number of candidates *node* builds next; it shrinks so that all nodes finish together.

        A candidate that was lost with a node is built alone, in case it is what kills nodes.
        """
        if self._losses[self._queue[0]]:
            return 1
        share = -(-len(self._queue) // (2 * len(self._building)))
        return min(len(self._queue), max(share, node.builders))

    # Taking answers

    def _take(self, name: str) -> None:
        """Process the outcome of the call to *name*."""
        try:
            answer = self._calls.answer(name)
            self._nodes[name].take(answer)
        except NodeHung as error:
            self._roster.set_aside(name, str(error))
            self._give_back(name, "it did not answer")
        except NodeLost as error:
            self._leave_out(name, str(error))
        except NodeUnfit as error:
            self._leave_out(name, str(error), is_unfit=True)
        except VerificationFailed as error:
            place = self._roster.fleet.place(name)
            raise VerificationFailed(f"on {place}: {error.message}") from None

    def _built(self, node: _Node, answer: bytes) -> None:
        results = read_answer(answer, len(node.asked))
        asked, node.asked = node.asked, []
        for index, result in zip(asked, results, strict=True):
            if isinstance(result, Built):
                self._code[index] = result
                self._ready.append(index)
            elif self._start(index):
                self._settle(index, result)

    def _measured(self, name: str, node: _Node, answer: bytes, seconds: float) -> None:
        [result] = read_results(answer, 1)
        self._roster.deadlines.note(self._task, seconds)
        [index], node.asked = node.asked, []
        if self._is_to_repeat(name, index, result):
            self._confirm[index] = result
        else:
            self._settle(index, result)

    def _is_to_repeat(self, name: str, index: int, result: MeasureResult) -> bool:
        """Return True for an apparent new best that was measured off the home node."""
        if name == self.home or index in self._confirm or not result.ok:
            return False
        return self._best_s is None or result.median_s < self._best_s

    # Telling the observer

    def _start(self, index: int) -> bool:
        """Tell the observer, once per candidate; returns False if it already knows the result."""
        if index in self._started:
            return True
        self._started.add(index)
        known = None if self._observer is None else self._observer.started(self._candidates[index])
        if known is not None:
            self._results[index] = known
            self._note(known)
        return known is None

    def _settle(self, index: int, result: MeasureResult) -> None:
        """Give a candidate its result; the code that ran is kept and told."""
        self._results[index] = result
        self._confirm.pop(index, None)
        self._note(result)
        built = self._code.pop(index, None)
        if built is not None and built.digest != result.object_digest:
            built = None
        if built is not None:
            self._keep(built)
        if self._observer is not None:
            self._observer.ended(TrialEnd(self._candidates[index], result, built))

    def _note(self, result: MeasureResult) -> None:
        if result.ok:
            self._best_s = min(result.median_s, self._best_s or result.median_s)
