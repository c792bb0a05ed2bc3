"""Loops and branches over calls as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.runtime.control import (
    Argument,
    BranchSteps,
    CarriedPlaces,
    LoopSteps,
    PlannedControl,
    Stride,
)
from ansorpy.runtime.entry.sizes import Sizes
from ansorpy.runtime.entry.text import at, require
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.status import Status

__all__ = ["Flow"]

Emit = Callable[[], None]


class Flow:
    """What loops change while they run: numbers of iterations, and pointers.

    All of it is on the stack.  The extents that it needs must be computed in advance.
    """

    def __init__(self, text: FunctionText, plan: ExecutionPlan, sizes: Sizes) -> None:
        self._text = text
        self._sizes = sizes
        loops = [c for c in plan.controls if isinstance(c, LoopSteps)]
        numbers = [n for loop in loops for c in loop.carried for n in (c.current, c.next)]
        self._counters = {loop.number: self._variable("i64") for loop in loops}
        self._trips: dict[int, str] = {}
        self._pointers = {number: self._variable("ptr") for number in numbers}

    def pointer(self, number: int) -> str:
        """Emit the pointer with this *number* as it is now."""
        return self._load("ptr", self._pointers[number])

    def moved(self, place: str, strides: Sequence[Stride]) -> str:
        """Emit *place* moved by *strides*."""
        for stride in strides:
            row = self._load("i64", self._counters[stride.loop])
            if stride.is_last:
                behind = self._text.define(f"sub i64 {self._trips[stride.loop]}, {row}")
                row = self._text.define(f"sub i64 {behind}, 1")
            size = self._sizes.value(stride.bytes)
            place = at(self._text, place, self._text.define(f"mul i64 {row}, {size}"))
        return place

    def emit(
        self, control: PlannedControl, address: Callable[[Argument], str], bodies: Sequence[Emit]
    ) -> None:
        """Emit *control* over *bodies*, the two of a branch or the one of a loop."""
        if isinstance(control, LoopSteps):
            self._loop(control, address, bodies[0])
        else:
            self._branch(control, address, *bodies)

    def _branch(
        self, control: BranchSteps, address: Callable[[Argument], str], then: Emit, other: Emit
    ) -> None:
        text = self._text
        labels = [text.fresh_label(hint) for hint in ("then", "else", "joined")]
        text.branch_if(self._holds(address(control.condition)), labels[0], labels[1])
        for label, body in zip(labels[:2], (then, other), strict=True):
            text.start_block(label)
            body()
            text.branch(labels[2])
        text.start_block(labels[2])

    def _loop(self, loop: LoopSteps, address: Callable[[Argument], str], body: Emit) -> None:
        text, counter = self._text, self._counters[loop.number]
        head, inside, done = (text.fresh_label(hint) for hint in ("loop", "body", "done"))
        bounds = self._bounds(loop, address)
        where = address(loop.counter)
        homes = [(address(c.result), address(c.spare)) for c in loop.carried]
        for c, (result, spare) in zip(loop.carried, homes, strict=True):
            self._store("ptr", address(c.before), self._pointers[c.current])
            first = spare if isinstance(loop.trips, int) and loop.trips % 2 == 0 else result
            self._store("ptr", first, self._pointers[c.next])
        self._store("i64", "0", counter)
        if loop.begins is not None:
            text.branch_if(self._holds(address(loop.begins)), head, done)
        else:
            text.branch(head)
        text.start_block(head)
        number = self._load("i64", counter)
        for bound in bounds:
            more = text.fresh_label("more")
            text.branch_if(text.define(f"icmp slt i64 {number}, {bound}"), more, done)
            text.start_block(more)
        if loop.is_bounded:
            inside_bounds = f"icmp slt i64 {number}, {self._trips[loop.number]}"
            require(text, inside_bounds, Status.OUT_OF_BOUNDS)
        text.branch(inside)
        text.start_block(inside)
        self._store("i64", number, where)
        body()
        for c, home in zip(loop.carried, homes, strict=True):
            self._swap(c, *home)
        after = text.define(f"add i64 {self._load('i64', counter)}, 1")
        self._store("i64", after, counter)
        if loop.goes_on is not None:
            text.branch_if(self._holds(address(loop.goes_on)), head, done)
        else:
            text.branch(head)
        text.start_block(done)
        if loop.count is not None:
            self._store("i64", self._load("i64", counter), address(loop.count))
        for c, (result, _) in zip(loop.carried, homes, strict=True):
            self._settle(c, result)

    def _bounds(self, loop: LoopSteps, address: Callable[[Argument], str]) -> list[str]:
        """What the number of an iteration must be below; otherwise, the loop ends."""
        bounds = []
        if loop.trips is not None:
            self._trips[loop.number] = self._sizes.value(loop.trips)
            bounds = [] if loop.is_bounded else [self._trips[loop.number]]
        if loop.limit is not None:
            bounds.append(self._load("i64", address(loop.limit)))
        return bounds

    def _swap(self, value: CarriedPlaces, result: str, spare: str) -> None:
        """What was written is read next, and the other memory is written."""
        text, written = self._text, self.pointer(value.next)
        self._store("ptr", written, self._pointers[value.current])
        is_result = text.define(f"icmp eq ptr {written}, {result}")
        other = text.define(f"select i1 {is_result}, ptr {spare}, ptr {result}")
        self._store("ptr", other, self._pointers[value.next])

    def _settle(self, value: CarriedPlaces, result: str) -> None:
        """Copy the last value to *result*, unless it is there."""
        text, last = self._text, self.pointer(value.current)
        copy, there = text.fresh_label("copy"), text.fresh_label("there")
        text.branch_if(text.define(f"icmp eq ptr {last}, {result}"), there, copy)
        text.start_block(copy)
        size = self._sizes.value(value.bytes)
        text.emit(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {result}, ptr {last}, i64 {size}, i1 false)"
        )
        text.branch(there)
        text.start_block(there)

    def _holds(self, place: str) -> str:
        """Emit whether the bool at *place* is true."""
        return self._text.define(f"icmp ne i8 {self._load('i8', place)}, 0")

    def _variable(self, kind: str) -> str:
        return self._text.define(f"alloca {kind}, align 8")

    def _load(self, kind: str, place: str) -> str:
        align = 1 if kind == "i8" else 8
        return self._text.define(f"load {kind}, ptr {place}, align {align}")

    def _store(self, kind: str, value: str, place: str) -> None:
        self._text.emit(f"store {kind} {value}, ptr {place}, align 8")
