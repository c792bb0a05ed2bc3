"""A fleet of nodes that answer at once from a table of times, and are lost or hang on command."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import NodeLost, Ticket
from ansorpy.measure.fleet.wire import (
    Work,
    read_work,
    write_answer,
    write_failure,
    write_hello,
)
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from tests.measure.planted import KINDS, planted

Outcome = Callable[[str, State], MeasureResult]
"""What running a schedule on a node gives."""


Fate = Callable[[str, str, Sequence[State]], bool]


def shelf(factor: int) -> Built:
    """Code that stands for the schedule with this factor."""
    kinds = list(KINDS)
    return replace(planted("good"), bind=planted(kinds[factor % len(kinds)]).run)


def factor_of(state: State) -> int:
    """The inner factor a candidate is told apart by; 1 for the default schedule."""
    extents = [it.extent for it in state.stage("C").iters]
    return extents[1] or 1


@dataclass(frozen=True)
class Question:
    """A call to a node."""

    node: str
    method: str
    work: Work | None

    @property
    def states(self) -> Sequence[State]:
        return [] if self.work is None else self.work.states


@dataclass
class SimulatedFleet:
    """Nodes by name; *outcome* says what they measure, *fate* when they are lost or hang.

    ``fate(node, method, states)`` is asked when a call of *method* is answered, with its
    candidates: True loses the node.  ``hangs`` is asked the same when it is sent: True keeps the
    answer back.  Answers arrive in an order drawn from *seed*.
    """

    names: list[str]
    outcome: Outcome
    fate: Fate = lambda node, kind, states: False
    hangs: Fate = lambda node, kind, states: False
    seed: int = 0
    at_once: int = 2
    error: AnsorpyError | None = None
    spoil: Callable[[str, bytes], bytes] = lambda node, answer: answer
    log: list[tuple[str, str, int]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    closed: bool = False
    building: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    pending: dict[Ticket, Question] = field(default_factory=dict)
    _hung: set[Ticket] = field(default_factory=set)
    _asked: int = 0
    sent: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def nodes(self, task: Task) -> list[str]:
        return list(self.names)

    def builders(self, task: Task) -> list[str]:
        return list(self.building)

    def call(self, node: str, method: str, *message: bytes) -> Ticket:
        self._asked += 1
        question = Question(node, method, read_work(*message) if message else None)
        self.pending[self._asked] = question
        self.asked.append((node, method))
        if self.hangs(node, method, question.states):
            self._hung.add(self._asked)
        return self._asked

    def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
        ready = [ticket for ticket in tickets if ticket not in self._hung]
        if not ready:
            time.sleep(timeout_s)
        # Greetings first, so that every node takes part however busy this machine is.
        greetings = [t for t in ready if t in self.pending and self.pending[t].method == "hello"]
        return ready and [self._rng.choice(greetings or ready)]

    def take(self, ticket: Ticket) -> bytes:
        question = self.pending.pop(ticket)
        node, method, states = question.node, question.method, question.states
        home = next((names for names in (self.names, self.building) if node in names), None)
        if home is None:
            raise NodeLost("it is gone")
        if self.fate(node, method, states):
            home.remove(node)
            raise NodeLost("the plug was pulled")
        if question.work is None:
            return self.spoil(node, write_hello(self.at_once))
        self.log += [(node, method, factor_of(state)) for state in states]
        if self.error is not None:
            return write_failure(self.error)
        built = question.work.built
        results = [self._result(node, method, state, built) for state in states]
        return self.spoil(node, write_answer(results))

    def _result(
        self, node: str, method: str, state: State, built: Built | None
    ) -> MeasureResult | Built:
        code = shelf(factor_of(state))
        assert built is None or built.digest == code.digest, "the code of another schedule"
        if method == "build":
            return code
        self.sent += built is not None
        return self.outcome(node, state)

    def drop(self, node: str) -> None:
        self.dropped.append(node)

    def place(self, node: str) -> str:
        return f"{node}.lab"

    def offers(self) -> str:
        return f"{len(self.names)} simulated nodes"

    def close(self) -> None:
        self.closed = True


def speeds(**factors: float) -> Outcome:
    """Times of 1 ms over the factor of the schedule, times how slow the node is."""

    def outcome(node: str, state: State) -> MeasureResult:
        seconds = 1e-3 / factor_of(state) * factors[node]
        return MeasureResult(TrialKind.OK, (seconds,), object_digest=f"{factor_of(state)}")

    return outcome


def failing(outcome: Outcome, *factors: int) -> Outcome:
    """*outcome*, but these schedules crash."""

    def changed(node: str, state: State) -> MeasureResult:
        result = outcome(node, state)
        if factor_of(state) in factors:
            return replace(result, kind=TrialKind.CRASH, seconds=(), reason="SIGSEGV")
        return result

    return changed
