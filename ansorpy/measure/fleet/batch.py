"""One batch of candidates over the nodes of a fleet: who builds, runs and repeats what.

Each node is given a chunk of candidates; it builds them, then runs them one by one.  Where some
nodes offer to build, they do all of it, and the code is sent to those that time.  A node that is
lost gives its candidates back to the queue: they were started once and are answered once.  What
seems a new best on any node is run again on the *home* node of the task, and its time there
counts, so the best times of a task are all of one machine.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansorpy import __version__
from ansorpy.errors import MissingDependency, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.fleet.base import Fleet, NodeLost, Ticket, kind_of
from ansorpy.measure.fleet.wire import Found, Work, read_answer, read_hello, single, write_work
from ansorpy.measure.protocol import Message, ProtocolError, encode
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.runner import Observer
from ansorpy.phases import Part, phase
from ansorpy.schedule.state import State

__all__ = ["Batch", "Patience", "ask_once", "refused"]

_LOG = logging.getLogger(__name__)
_HELLO = encode(Message("hello"))


@dataclass(frozen=True)
class Patience:
    """How long to wait for nodes, and how often to try.

    Args:
        rejoin_s: Seconds without any node before the search is given up.
        look_s: Seconds between looks for nodes that joined.
        losses: A candidate that was under way on so many nodes when they were lost is a crash.
        failures: A node that failed so often in one batch gets no more of it.
    """

    rejoin_s: float = 60.0
    look_s: float = 5.0
    losses: int = 3
    failures: int = 3


@dataclass
class _Node:
    """A node at work: what it was asked, and what it has built and not yet run."""

    times: bool = True
    builders: int = 0
    ticket: Ticket | None = None
    kind: str = ""
    asked: list[int] = field(default_factory=list)
    built: deque[int] = field(default_factory=deque)

    @property
    def held(self) -> list[int]:
        """Candidates that nobody else has, those under way first."""
        return [*self.asked, *self.built]


class Batch:
    """Measures *candidates* of *task*; see :meth:`run`.

    *awaited*: there were nodes before, so when there are none now they are waited for.
    """

    def __init__(
        self,
        fleet: Fleet,
        task: Task,
        candidates: Sequence[State],
        incumbent_s: float | None,
        observer: Observer | None,
        *,
        home: str | None = None,
        awaited: bool = False,
        patience: Patience | None = None,
        keep: Callable[[Built], None] = lambda built: None,
    ) -> None:
        self.home = home
        self._fleet = fleet
        self._task = task
        self._candidates = candidates
        self._best_s = incumbent_s
        self._observer = observer
        self._awaited = awaited
        self._patience = patience or Patience()
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
        """One result a candidate, in order.

        Raises:
            VerificationFailed: A node's default schedule is wrong, so nothing can be checked.
            MissingDependency: No node offers the task's kind; all were lost and none came back.
        """
        try:
            while len(self._results) < len(self._candidates):
                self._have_nodes()
                self._give_all()
                busy = {n.ticket: name for name, n in self._nodes.items() if n.ticket is not None}
                for ticket in self._wait(list(busy)):
                    self._take(busy[ticket])
        except BaseException:
            # Nobody waits for what they do any more.
            for name, node in self._nodes.items():
                if node.asked:
                    self._fleet.drop(name)
            raise
        return [self._results[index] for index in range(len(self._candidates))]

    def _wait(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        runs = any(node.kind == "measure" for node in self._nodes.values())
        with phase(Part.RUN if runs else Part.BUILD):
            return self._fleet.wait(tickets, self._patience.look_s) if tickets else []

    # Nodes come and go

    def _have_nodes(self) -> None:
        """Look for nodes now and then; without any, wait for those that were lost."""
        now = time.monotonic()
        if self._timing and now < self._look_at:
            return
        there = self._join()
        lost = not there and (self._awaited or bool(self._said))
        give_up_at = now + (self._patience.rejoin_s if lost else 0.0)
        while not self._timing:
            if time.monotonic() >= give_up_at:
                raise refused(self._fleet, self._task, self._said)
            time.sleep(0.2)
            self._join()
        self._look_at = time.monotonic() + self._patience.look_s

    @property
    def _timing(self) -> list[str]:
        """The nodes that time, in the order they joined."""
        return [name for name, node in self._nodes.items() if node.times]

    def _join(self) -> list[str]:
        """Take in the nodes that are there now; one that keeps failing is left out."""
        there = self._fleet.nodes(self._task)
        for name in (*there, *self._fleet.builders(self._task)):
            if self._failures.get(name, 0) < self._patience.failures:
                self._nodes.setdefault(name, _Node(times=name in there))
        self._elect()
        return there

    def _elect(self) -> None:
        if self.home not in self._nodes:
            self.home = next(iter(self._timing), None)

    def _lose(self, name: str, reason: str, *, for_good: bool = False) -> None:
        """Give back what *name* had; its repeats go to the next home.

        *for_good*: it cannot do this work, whatever the candidate.
        """
        node = self._nodes.pop(name)
        self._fleet.drop(name)
        failures = self._failures.get(name, 0) + 1
        self._failures[name] = self._patience.failures if for_good else failures
        self._said.append(f"{name}: {reason}")
        _LOG.warning("node %s is left out: %s", name, reason)
        given_back = []
        for index in node.held:
            self._losses[index] += index in node.asked and not for_good
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

    # Work is given

    def _give_all(self) -> None:
        for name, node in list(self._nodes.items()):
            if node.ticket is None:
                self._give(name, node)

    def _give(self, name: str, node: _Node) -> None:
        """Ask an idle node the next thing: to greet, to repeat, to run, or to build."""
        if not node.builders:
            self._ask(name, node, "hello", [], _HELLO)
            return
        index = self._next_to_run(name, node) if node.times else None
        if index is not None:
            code = self._code.get(index)
            work = Work(self._task, [self._candidates[index]], self._best_s, built=code)
            self._ask(name, node, "measure", [index], encode(write_work("measure", work)))
        elif self._queue and node in self._building:
            kind = "build" if node.times else "compile"
            chunk = [self._queue.popleft() for _ in range(self._share(node))]
            work = Work(self._task, [self._candidates[index] for index in chunk])
            self._ask(name, node, kind, chunk, encode(write_work(kind, work)))

    def _next_to_run(self, name: str, node: _Node) -> int | None:
        """What *node* is to run next: a repeat, what it built, what was built for anyone."""
        for index in self._confirm if name == self.home else ():
            return index
        while node.built or self._ready:
            index = (node.built or self._ready).popleft()
            if self._start(index):
                return index
        return None

    @property
    def _building(self) -> list[_Node]:
        """Those that only build, or all when there are none."""
        nodes = list(self._nodes.values())
        return [node for node in nodes if not node.times] or nodes

    def _share(self, node: _Node) -> int:
        """How many candidates *node* builds next: fewer towards the end, so that all end at once.

        One that was lost with a node is built alone, in case it is what ends them.
        """
        if self._losses[self._queue[0]]:
            return 1
        share = -(-len(self._queue) // (2 * len(self._building)))
        return min(len(self._queue), max(share, node.builders))

    def _start(self, index: int) -> bool:
        """Tell the observer once; False when it knows the result."""
        if index in self._started:
            return True
        self._started.add(index)
        known = None if self._observer is None else self._observer.started(index)
        if known is not None:
            self._results[index] = known
            self._note(known)
        return known is None

    def _ask(self, name: str, node: _Node, kind: str, indices: list[int], frame: bytes) -> None:
        node.kind, node.asked = kind, indices
        node.ticket = self._fleet.ask(name, frame)

    # Answers are taken

    def _take(self, name: str) -> None:
        """Take the outcome of what *name* was asked."""
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
        """A node that cannot work is left out; a wrong reference is nobody's own trouble."""
        text = str(message.fields.get("text", ""))
        if message.fields.get("type") == VerificationFailed.__name__:
            raise VerificationFailed(f"on {name}: {text}")
        self._lose(name, text, for_good=True)

    def _answered(self, name: str, node: _Node, answers: Sequence[Found]) -> None:
        ran = node.kind == "measure"
        for result, built in answers:
            if result is None and (ran or (built is None) != node.times):
                raise ProtocolError(f"it answers {node.kind} with neither result nor code")
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
        """True when it looks like a new best of another machine than the home node."""
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
            self._observer.finished(index, result, built)

    def _note(self, result: MeasureResult) -> None:
        if result.ok:
            self._best_s = min(result.median_s, self._best_s or result.median_s)


def _checked_hello(message: Message) -> int:
    hello = read_hello(message)
    if hello.version != __version__:
        raise ProtocolError(f"it runs ansorpy {hello.version}, the driver {__version__}")
    return hello.builders


def ask_once(fleet: Fleet, node: str, work: Work, kind: str) -> list[MeasureResult | None]:
    """Ask *node* alone and wait; raises :class:`NodeLost` when it gives no answer."""
    ticket = fleet.ask(node, encode(write_work(kind, work)))
    try:
        while not fleet.wait([ticket], 60.0):
            continue
        message = single(fleet.take(ticket))
        if message.kind == "error":
            raise NodeLost(str(message.fields.get("text", "")))
        return [result for result, _ in read_answer(message, len(work.states))]
    except ProtocolError as error:
        raise NodeLost(str(error)) from None
    except BaseException:
        fleet.drop(node)
        raise


def refused(fleet: Fleet, task: Task, said: Sequence[str]) -> MissingDependency:
    """The error for a task that no node will time."""
    lines = [
        f"no node can time {kind_of(task.target)} with {task.threads} threads; offered: "
        f"{fleet.offers()}",
        *said,
    ]
    hint = "`ansorpy doctor` on a node says what it may offer; see docs/workers.md"
    return MissingDependency("\n".join(lines), hint=hint)
