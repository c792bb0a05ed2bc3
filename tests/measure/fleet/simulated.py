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
from ansorpy.measure.fleet.wire import Found, Work, read_work, single, write_answer
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.workers.protocol import Message, encode
from ansorpy.schedule.state import State
from ansorpy.version import __version__
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


def read(frame: bytes) -> tuple[str, Work | None]:
    """The kind of a question, and its work where it is not a greeting."""
    message = single(frame)
    return message.kind, None if message.kind == "hello" else read_work(message)


@dataclass
class SimulatedFleet:
    """Nodes by name; *outcome* says what they measure, *fate* when they are lost or hang.

    ``fate(node, kind, states)`` is asked when a question of *kind* is answered, with its
    candidates: True loses the node.  ``hangs`` is asked the same when it is sent: True keeps the
    answer back.  Answers arrive in an order drawn from *seed*.
    """

    names: list[str]
    outcome: Outcome
    fate: Fate = lambda node, kind, states: False
    hangs: Fate = lambda node, kind, states: False
    seed: int = 0
    at_once: int = 2
    version: str = __version__
    error: AnsorpyError | None = None
    spoil: Callable[[str, bytes], bytes] = lambda node, frame: frame
    log: list[tuple[str, str, int]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    closed: bool = False
    building: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    _waiting: dict[Ticket, tuple[str, bytes]] = field(default_factory=dict)
    _hung: set[Ticket] = field(default_factory=set)
    _asked: int = 0
    sent: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def nodes(self, task: Task) -> list[str]:
        return list(self.names)

    def builders(self, task: Task) -> list[str]:
        return list(self.building)

    def ask(self, node: str, frame: bytes) -> Ticket:
        self._asked += 1
        self._waiting[self._asked] = (node, frame)
        kind, work = read(frame)
        self.asked.append((node, kind))
        if self.hangs(node, kind, [] if work is None else work.states):
            self._hung.add(self._asked)
        return self._asked

    def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
        ready = [ticket for ticket in tickets if ticket not in self._hung]
        if not ready:
            time.sleep(timeout_s)
        return ready and [self._rng.choice(ready)]

    def take(self, ticket: Ticket) -> bytes:
        node, frame = self._waiting.pop(ticket)
        kind, work = read(frame)
        states = [] if work is None else work.states
        home = next((names for names in (self.names, self.building) if node in names), None)
        if home is None:
            raise NodeLost("it is gone")
        if self.fate(node, kind, states):
            home.remove(node)
            raise NodeLost("the plug was pulled")
        if work is None:
            return encode(Message("hello", {"version": self.version, "builders": self.at_once}))
        self.log += [(node, kind, factor_of(state)) for state in work.states]
        if self.error is not None:
            fields = {"type": type(self.error).__name__, "text": str(self.error)}
            return encode(Message("error", fields))
        found = [self._found(node, kind, state, work.built) for state in work.states]
        return self.spoil(node, encode(write_answer(found)))

    def _found(self, node: str, kind: str, state: State, built: Built | None) -> Found:
        code = shelf(factor_of(state))
        assert built is None or built.digest == code.digest, "the code of another schedule"
        if kind == "build":
            return None, None
        if kind == "compile":
            return None, code
        self.sent += built is not None
        return self.outcome(node, state), None

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
