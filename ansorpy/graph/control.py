"""Loops and branches over the calls of a network.

The calls of a network are one list, in which those of a loop's body, and of a branch, are
consecutive.  Loops and branches are ranges of this list, each listed before those inside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from ansorpy.ir.extents import AnyExtent, most

__all__ = ["Branch", "Carried", "Control", "Inside", "Loop", "Row", "Spans", "nested", "runs_of"]

USUAL_TRIPS = 16
"""Iterations that are expected of a loop whose number of iterations depends on data."""

R = TypeVar("R", bound="Spans")


@dataclass(frozen=True)
class Spans:
    """A part of the calls: those from number ``start`` to number ``stop`` (exclusive)."""

    start: int
    stop: int


@dataclass(frozen=True)
class Carried:
    """A value that each iteration reads, and writes anew; all are names of values.

    The first iteration reads ``before``.  Then ``current``, which an iteration reads, and ``next``,
    which it writes, are ``result`` and ``spare`` in turns, two pieces of memory.  At the end the
    last value is in ``result``.
    """

    before: str
    current: str
    next: str
    result: str
    spare: str


@dataclass(frozen=True)
class Row:
    """The row ``name`` of ``whole`` that belongs to an iteration: row ``i``, or the ``i``-th last.

    Rows are along the first axis of ``whole``, which is dense.  The iteration reads or writes it.
    """

    name: str
    whole: str
    is_last: bool
    is_written: bool


@dataclass(frozen=True)
class Loop(Spans):
    """Calls that are repeated for ``i = 0, 1, ..``, at most ``trips`` times.

    ``limit`` is a value that holds a further bound of ``i`` (int64), ``begins`` one that says
    whether there is a first iteration, and ``goes_on`` one that each iteration writes, which says
    whether there is another one (bool).  Calls find ``i`` in ``counter`` (int64).

    If ``is_bounded``, a run fails that would go on after ``trips`` iterations.
    """

    trips: AnyExtent | None
    limit: str | None
    begins: str | None
    goes_on: str | None
    counter: str
    carried: tuple[Carried, ...]
    rows: tuple[Row, ...]
    count: str | None = None
    is_bounded: bool = False

    @property
    def moving(self) -> frozenset[str]:
        """The values whose places differ from iteration to iteration."""
        pairs = ((c.current, c.next) for c in self.carried)
        return frozenset((*(name for pair in pairs for name in pair), *(r.name for r in self.rows)))

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that it reads apart from what its calls do."""
        rows = (row.whole for row in self.rows if not row.is_written)
        own = filter(None, (self.limit, self.begins))
        return (*own, *(c.before for c in self.carried), *rows)

    @property
    def writes(self) -> tuple[str, ...]:
        """The values that it writes apart from what its calls do, or by rows."""
        rows = (row.whole for row in self.rows if row.is_written)
        held = (name for c in self.carried for name in (c.result, c.spare))
        own = filter(None, (self.goes_on, self.counter, self.count))
        return (*own, *held, *rows)

    def moved(self, name: Callable[[str], str], by: int) -> Loop:
        """The same loop, *by* calls later, where each value has another name."""
        return replace(
            self, start=self.start + by, stop=self.stop + by,
            limit=self.limit and name(self.limit), begins=self.begins and name(self.begins),
            goes_on=self.goes_on and name(self.goes_on), counter=name(self.counter),
            carried=tuple(
                Carried(*map(name, (c.before, c.current, c.next, c.result, c.spare)))
                for c in self.carried
            ),
            rows=tuple(replace(r, name=name(r.name), whole=name(r.whole)) for r in self.rows),
            count=self.count and name(self.count),
        )  # fmt: skip


@dataclass(frozen=True)
class Branch(Spans):
    """Calls of which those before number ``middle`` run if ``condition`` holds, else the others.

    ``condition`` is the name of a value (bool).
    """

    middle: int
    condition: str
    moving: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[tuple[str, ...]] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that it reads apart from what its calls do."""
        return (self.condition,)

    def moved(self, name: Callable[[str], str], by: int) -> Branch:
        """The same branch, *by* calls later, where each value has another name."""
        return replace(
            self, start=self.start + by, stop=self.stop + by, middle=self.middle + by,
            condition=name(self.condition),
        )  # fmt: skip


Control = Loop | Branch


@dataclass(frozen=True)
class Inside(Generic[R]):
    """A loop or branch, and in order what is inside: numbers of calls, and further ones."""

    control: R
    parts: tuple[int | Inside[R], ...]

    def split(self, number: int) -> tuple[tuple[int | Inside[R], ...], tuple[int | Inside[R], ...]]:
        """The parts before call *number*, and the others."""
        cut = sum((p if isinstance(p, int) else p.control.start) < number for p in self.parts)
        return self.parts[:cut], self.parts[cut:]


def nested(calls: int, controls: Sequence[R]) -> tuple[int | Inside[R], ...]:
    """The numbers of all *calls*, those inside loops and branches as part of these."""
    return tuple(_within(0, calls, deque(controls)))


def _within(start: int, stop: int, left: deque[R]) -> Iterator[int | Inside[R]]:
    at = start
    while at < stop:
        if left and left[0].start == at and left[0].stop <= stop:
            control = left.popleft()
            yield Inside(control, tuple(_within(control.start, control.stop, left)))
            at = control.stop
        else:
            yield at
            at += 1


def runs_of(call: int, controls: Iterable[Control]) -> int:
    """How often *call* is expected to run in one run of the network."""
    runs = 1
    for control in controls:
        if isinstance(control, Loop) and control.start <= call < control.stop:
            runs *= USUAL_TRIPS if control.trips is None else max(1, most(control.trips))
    return runs
