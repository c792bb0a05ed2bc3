"""Distribute one batch of candidates over the nodes of a fleet: building, running, repeating.

Each node is given a chunk of candidates; it builds them, then runs them one by one.  If some nodes
offer to build, they do all the building, and the code is sent to the nodes that time.  When a node
is lost, its candidates return to the queue; each candidate is still started once and gets one
result.  A candidate that seems a new best on any node is run again on the task's *home* node, and
that time counts, so the best times of a task all come from one machine.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ansorpy.deadline import left_s
from ansorpy.errors import VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import NodeLost, Ticket
from ansorpy.measure.fleet.roster import Roster
from ansorpy.measure.fleet.wire import Found, Work, read_answer, read_hello, single, write_work
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.runner import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.measure.workers.protocol import Message, ProtocolError, encode
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State
from ansorpy.version import __version__

__all__ = ["Batch", "retimed"]

_LOG = logging.getLogger(__name__)
_HELLO = encode(Message("hello"))
_LATE = "no answer when the time was up"
_ASKED = {
    "hello": "say what it is",
    "build": "build programs",
    "compile": "build programs",
    "measure": "time a program",
    "retime": "time finalists",
}


@dataclass
class _Node:
    """A node at work: its pending request, and the candidates it has built but not yet run."""

    times: bool = True
    builders: int = 0
    ticket: Ticket | None = None
    asked_at: float = 0.0
    incumbent_s: float | None = None
    kind: str = ""
    asked: list[int] = field(default_factory=list)
    built: deque[int] = field(default_factory=deque)

    @property
    def held(self) -> list[int]:
        """Candidates that only this node has, pending ones first."""
        return [*self.asked, *self.built]


class Batch:
    """Measures *candidates* of *task*; see :meth:`run`."""

    def __init__(
        self,
        roster: Roster,
        task: Task,
        candidates: Sequence[State],
        incumbent_s: float | None,
        observer: Observer | None,
        *,
        home: str | None = None,
        keep: Callable[[Built], None] = lambda built: None,
    ) -> None:
        self.home = home
        self._roster = roster
        self._fleet = roster.fleet
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
        try:
            while len(self._results) < len(self._candidates):
                if left_s() <= 0 and self._is_over():
                    break
                self._have_nodes()
                self._give_all()
                busy = {n.ticket: name for name, n in self._nodes.items() if n.ticket is not None}
                for ticket in self._wait(list(busy)):
                    self._take(busy[ticket])
                self._lose_hung()
        except BaseException:
            # Nobody waits for their answers any more.
            for name, node in self._nodes.items():
                if node.asked:
                    self._fleet.drop(name)
            raise
        return [self._results[index] for index in range(len(self._candidates))]

    def _wait(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Wait for any of *tickets*, until one is overdue at most; returns those that are done."""
        if not tickets:
            return []
        runs = any(node.kind == "measure" for node in self._nodes.values())
        least_s = min(self._left_s(node) for node in self._nodes.values())
        with profiled(Activity.RUN if runs else Activity.BUILD):
            return self._fleet.wait(tickets, max(0.0, min(least_s, self._patience.look_s)))

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

    def _lose_hung(self) -> None:
        """Set aside nodes whose answer is overdue, unless it has arrived since the last wait."""
        for name, node in list(self._nodes.items()):
            overdue = node.ticket is not None and self._left_s(node) <= 0
            if overdue and not self._fleet.wait([node.ticket], 0.0):
                self._roster.set_aside(name, _overdue(node.kind, self._limit_s(node)))
                self._give_back(name, "it did not answer")

    def _left_s(self, node: _Node) -> float:
        """Seconds until the answer of *node* is overdue; infinite if it has no request."""
        if node.ticket is None:
            return math.inf
        return node.asked_at + self._limit_s(node) - time.monotonic()

    def _limit_s(self, node: _Node) -> float:
        """Time limit in seconds of the current request to *node*."""
        deadlines = self._roster.deadlines
        if node.kind == "hello":
            return deadlines.greeting_s()
        if node.kind == "measure":
            return deadlines.run_s(self._task, node.incumbent_s)
        return deadlines.build_s(len(node.asked), node.builders)

    def _lose(self, name: str, reason: str, *, for_good: bool = False) -> None:
        """Drop *name* for now; *for_good*: it cannot do this work, whatever the candidate."""
        failures = self._failures.get(name, 0) + 1
        self._failures[name] = self._patience.failures if for_good else failures
        place = self._fleet.place(name)
        self._said.append(f"{place}: {reason}")
        _LOG.warning("node %s is left out: %s", place, reason)
        self._give_back(name, reason, blamed=not for_good)

    def _give_back(self, name: str, reason: str, *, blamed: bool = True) -> None:
        """Return the candidates of *name* to the queue; its repeats go to the next home.

        *blamed*: the pending candidates may have caused the loss.
        """
        node = self._nodes.pop(name)
        self._fleet.drop(name)
        given_back = []
        for index in node.held:
            self._losses[index] += index in node.asked and blamed
            if self._losses[index] >= self._patience.losses:
                what = f"{self._losses[index]} nodes were lost while it was under way: {reason}"
                self._confirm.pop(index, None)
                if self._start(index):
                    self._settle(index, MeasureResult(TrialKind.CRASH, reason=what), None)
            elif index not in self._confirm:
                given_back.append(index)
        for index in reversed(given_back):
            (self._ready if index in self._code else self._queue).appendleft(index)
        self._elect()

    def _is_over(self) -> bool:
        """Cancel waiting candidates, as time is up; returns True when none is pending.

        Pending ones are answered soon, as their nodes know the deadline.
        """
        if left_s() <= -self._patience.late_s:
            for name in [name for name, node in self._nodes.items() if node.asked]:
                self._lose(name, _LATE, for_good=True)
        under_way = {index for node in self._nodes.values() for index in node.asked}
        self._queue.clear()
        self._ready.clear()
        for node in self._nodes.values():
            node.built.clear()
        for index in range(len(self._candidates)):
            if index not in under_way and index not in self._results and self._start(index):
                self._confirm.pop(index, None)
                self._settle(index, out_of_time(), None)
        return not under_way

    # Giving work

    def _give_all(self) -> None:
        for name, node in list(self._nodes.items()):
            if node.ticket is None:
                self._give(name, node)

    def _give(self, name: str, node: _Node) -> None:
        """Send an idle node its next request: a greeting, a repeat, a run or a build."""
        if not node.builders:
            self._ask(name, node, "hello", [], _HELLO)
            return
        index = self._next_to_run(name, node) if node.times else None
        if index is not None:
            code = self._code.get(index)
            node.incumbent_s = self._best_s
            states = [self._candidates[index]]
            work = Work(self._task, states, self._best_s, built=code, within_s=_within_s())
            self._ask(name, node, "measure", [index], encode(write_work("measure", work)))
        elif self._queue and node in self._building:
            kind = "build" if node.times else "compile"
            chunk = [self._queue.popleft() for _ in range(self._share(node))]
            states = [self._candidates[index] for index in chunk]
            work = Work(self._task, states, within_s=_within_s())
            self._ask(name, node, kind, chunk, encode(write_work(kind, work)))

    def _next_to_run(self, name: str, node: _Node) -> int | None:
        """Next candidate to run on *node*: a repeat, one it built, or one built for any node."""
        for index in self._confirm if name == self.home else ():
            return index
        while node.built or self._ready:
            index = (node.built or self._ready).popleft()
            if self._start(index):
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

    def _ask(self, name: str, node: _Node, kind: str, indices: list[int], frame: bytes) -> None:
        node.kind, node.asked, node.asked_at = kind, indices, time.monotonic()
        node.ticket = self._fleet.ask(name, frame)

    # Taking answers

    def _take(self, name: str) -> None:
        """Process the outcome of the current request to *name*."""
        node = self._nodes[name]
        assert node.ticket is not None
        try:
            message = single(self._fleet.take(node.ticket))
            if message.kind == "error":
                self._fail(name, message)
            elif node.kind == "hello":
                node.builders = _checked_hello(message)
                node.ticket = None
            else:
                self._answered(name, node, read_answer(message, len(node.asked)))
        except NodeLost as error:
            self._lose(name, str(error))
        except ProtocolError as error:
            self._lose(name, str(error), for_good=True)

    def _fail(self, name: str, message: Message) -> None:
        """Drop a node that cannot work; a wrong reference is no fault of the node and is raised."""
        text = str(message.fields.get("text", ""))
        if message.fields.get("type") == VerificationFailed.__name__:
            raise VerificationFailed(f"on {name}: {text}")
        self._lose(name, text, for_good=True)

    def _answered(self, name: str, node: _Node, answers: Sequence[Found]) -> None:
        ran = node.kind == "measure"
        for result, built in answers:
            if result is None and (ran or (built is None) != node.times):
                raise ProtocolError(f"it answers {node.kind} with neither result nor code")
        if ran:
            self._roster.deadlines.note(self._task, time.monotonic() - node.asked_at)
        asked, node.ticket, node.asked = node.asked, None, []
        for index, (result, built) in zip(asked, answers, strict=True):
            if result is None and built is not None:
                self._code[index] = built
                self._ready.append(index)
            elif result is None:
                node.built.append(index)
            elif ran and self._is_to_repeat(name, index, result):
                self._confirm[index] = result
            elif self._start(index):
                self._confirm.pop(index, None)
                self._settle(index, result, built)

    def _is_to_repeat(self, name: str, index: int, result: MeasureResult) -> bool:
        """Return True for an apparent new best that was measured off the home node."""
        if name == self.home or index in self._confirm or not result.ok:
            return False
        rivals = [r.median_s for r in self._confirm.values()]
        rivals += [] if self._best_s is None else [self._best_s]
        return result.median_s < min(rivals, default=float("inf"))

    def _settle(self, index: int, result: MeasureResult, built: Built | None) -> None:
        self._results[index] = result
        self._code.pop(index, None)
        self._note(result)
        if built is not None:
            self._keep(built)
        if self._observer is not None:
            self._observer.ended(TrialEnd(self._candidates[index], result, built))

    def _note(self, result: MeasureResult) -> None:
        if result.ok:
            self._best_s = min(result.median_s, self._best_s or result.median_s)


def _within_s() -> float:
    """Time a node may take; no request is sent with less than a millisecond left."""
    return max(left_s(), 1e-3)


def _checked_hello(message: Message) -> int:
    hello = read_hello(message)
    if hello.version != __version__:
        raise ProtocolError(f"it runs ansorpy {hello.version}, the driver {__version__}")
    return hello.builders


def retimed(roster: Roster, node: str, work: Work) -> list[MeasureResult | None]:
    """Time finalists in turns on *node* and wait; raises :class:`NodeLost` if there is no answer.

    The deadline ends the wait as it does for a batch.
    """
    work = replace(work, within_s=_within_s())
    fleet, kind = roster.fleet, "retime"
    limit_s = roster.deadlines.retime_s(work.task, len(work.states))
    late_s = left_s() + roster.patience.late_s
    ticket = fleet.ask(node, encode(write_work(kind, work)))
    give_up_at = time.monotonic() + min(limit_s, late_s)
    try:
        while not fleet.wait([ticket], max(0.0, min(60.0, give_up_at - time.monotonic()))):
            if time.monotonic() < give_up_at:
                continue
            if late_s < limit_s:
                raise NodeLost(_LATE)
            roster.set_aside(node, reason := _overdue(kind, limit_s))
            raise NodeLost(reason)
        message = single(fleet.take(ticket))
        if message.kind == "error":
            raise NodeLost(str(message.fields.get("text", "")))
        return [result for result, _ in read_answer(message, len(work.states))]
    except ProtocolError as error:
        raise NodeLost(str(error)) from None
    except BaseException:
        fleet.drop(node)
        raise


def _overdue(kind: str, limit_s: float) -> str:
    return f"no answer within {limit_s:.3g} s when asked to {_ASKED[kind]}"
