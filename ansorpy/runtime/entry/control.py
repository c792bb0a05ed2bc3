"""Loops and branches over calls as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.ir.extents import dims_of
from ansorpy.ir.symbols import Dim
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
    """What changes while a program runs: numbers of iterations, pointers, and sizes it counts.

    Counters and pointers are on the stack, as are the arrays of sizes that calls take.  These and
    all extents are computed as soon as their sizes are known, so they are on all paths.
    """

    def __init__(self, text: FunctionText, plan: ExecutionPlan, sizes: Sizes) -> None:
        self._text = text
        self._sizes = sizes
        loops = [c for c in plan.controls if isinstance(c, LoopSteps)]
        numbers = [n for loop in loops for c in loop.carried for n in (c.current, c.next)]
        self._counters = {loop.number: self._variable("i64") for loop in loops}
        self._trips: dict[int, str] = {}
        self._pointers = {number: self._variable("ptr") for number in numbers}
        self._extents = list(plan.offsets if plan.controls else ())
        self._kinds = list(dict.fromkeys(step.dims for step in plan.steps if step.dims))
        self._arrays: dict[tuple[Dim, ...], str] = {}
        self._compute()

    def _compute(self) -> None:
        """Emit what depends on known sizes alone, and was not emitted before."""
        for extent in self._extents:
            if self._sizes.knows(dims_of([extent])):
                self._sizes.value(extent)
        for dims in self._kinds:
            if dims not in self._arrays and self._sizes.knows(dims):
                self._arrays[dims] = self._sizes.array(dims)

    def sizes_of(self, dims: tuple[Dim, ...]) -> str:
        """The address of an array of the sizes of *dims*."""
        return self._arrays[dims]

    def count(self, told: Iterable[tuple[Dim, str]]) -> None:
        """Emit that each dimension has the size at a place, which must be in its range."""
        for dim, place in told:
            size = self._load("i64", place)
            require(self._text, f"icmp ule i64 {size}, {dim.high}", Status.TOO_SMALL)
            self._sizes.add(dim, size)
        self._compute()

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
        bounds = [] if loop.trips is None else [self._sizes.value(loop.trips)]
        if bounds:
            self._trips[loop.number] = bounds[0]
        if loop.limit is not None:
            bounds.append(text.define(f"load i64, ptr {address(loop.limit)}, align 8"))
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
        for c, (result, _) in zip(loop.carried, homes, strict=True):
            self._settle(c, result)

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
