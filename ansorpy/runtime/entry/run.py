"""The functions ``plan`` and ``run`` of an entry: checks of a call's shapes, memory, and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.codegen.llvm.objects.clock import SPENT, START
from ansorpy.graph.control import Inside, nested
from ansorpy.ir.extents import dims_of
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.control import Argument, BranchSteps, MemoryRegion, PlannedControl
from ansorpy.runtime.entry.aliases import check_aliases
from ansorpy.runtime.entry.control import Flow
from ansorpy.runtime.entry.sizes import Sizes, emit_size
from ansorpy.runtime.entry.source import DONE, EntrySource, constants
from ansorpy.runtime.entry.tensors import TENSOR_BYTES, difference, extent_of, place_of
from ansorpy.runtime.entry.text import PARAMETERS, aligned, at, require, return_unless
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.ports import Port
from ansorpy.runtime.status import Status

__all__ = ["emit_calls", "emit_plan", "emit_run"]

Address = Callable[[Argument], str]
"""Emits the address of an argument."""


def emit_plan(source: EntrySource) -> str:
    """Emit ``plan``: the outputs' shapes, and the bytes of the context.

    A context has the arena, the largest workspace of any call, and padding for its alignment.
    """
    plan, text = source.plan, FunctionText(f"i32 @{source.name}_plan({PARAMETERS['plan']})")
    require(text, "icmp sgt i32 %threads, 0", Status.BAD_THREADS)
    _require_pointers(text, "%inputs", "%outputs", "%bytes")
    sizes = _sizes(text, plan)
    _check_inputs(text, plan, sizes)
    _store_shapes(text, list(map(plan.at_most, plan.outputs)), sizes)
    arena = sizes.layout(plan.slots)[1] if plan.slots else str(plan.arena_bytes)
    count = text.define("zext i32 %threads to i64")
    largest = "0"
    for shared, each in plan.workspaces:
        scratch = text.define(f"mul i64 {count}, {each}")
        size = text.define(f"add i64 {scratch}, {sizes.value(shared)}")
        more = text.define(f"icmp ugt i64 {size}, {largest}")
        largest = text.define(f"select i1 {more}, i64 {size}, i64 {largest}")
    padded = text.define(f"add i64 {largest}, {ALIGNMENT_BYTES - 1}")
    total = text.define(f"add i64 {padded}, {arena}")
    # A pointer is as wide as size_t.
    text.emit(f"store ptr {text.define(f'inttoptr i64 {total} to ptr')}, ptr %bytes")
    text.emit("ret i32 0")
    return text.render()


def emit_run(source: EntrySource) -> str:
    """Emit ``run``, which returns the status of the first call that fails, else 0."""
    plan, text = source.plan, FunctionText(f"i32 @{source.name}_run({PARAMETERS['run']})")
    state = text.define("load atomic i32, ptr @state acquire, align 4")
    require(text, f"icmp eq i32 {state}, {DONE}", Status.NOT_INITIALISED)
    require(text, "icmp sgt i32 %threads, 0", Status.BAD_THREADS)
    _require_pointers(text, "%context", "%inputs", "%outputs")
    sizes, largest = _sizes(text, plan), list(map(plan.at_most, plan.outputs))
    data = {
        region: [_tensor(text, table, number, port, sizes) for number, port in enumerate(ports)]
        for region, table, ports in (
            (MemoryRegion.INPUT, "%inputs", plan.inputs),
            (MemoryRegion.OUTPUT, "%outputs", largest),
        )
    }  # fmt: skip
    _check_inputs(text, plan, sizes)
    for number, port in enumerate(largest):
        _check_capacity(text, number, port, sizes)
    check_aliases(text, plan, sizes, data[MemoryRegion.INPUT], data[MemoryRegion.OUTPUT])
    _store_shapes(text, largest, sizes)
    arena, places, arena_bytes = aligned(text, "%context"), "", str(plan.arena_bytes)
    if plan.slots:
        places, arena_bytes = sizes.layout(plan.slots)
    workspace, constant = at(text, arena, arena_bytes), constants(text, source)
    flow = Flow(text, plan, sizes)

    def address(argument: Argument) -> str:
        base = arena
        if argument.region is MemoryRegion.POOL:
            assert isinstance(argument.offset, int)
            return constant(argument.offset)
        if argument.region is MemoryRegion.MOVING:
            base = flow.pointer(argument.number)
        elif argument.region is not MemoryRegion.ARENA:
            base = data[argument.region][argument.number]
        elif plan.slots:
            offset = text.define(f"load i64, ptr {at(text, places, 8 * argument.number)}, align 8")
            base = at(text, arena, offset)
        return flow.moved(at(text, base, sizes.value(argument.offset)), argument.strides)

    stamps = f"@{source.name}_stamps" if source.is_timed else None
    calls = _Calls(text, plan.steps, address, workspace, "%threads", stamps, sizes)
    _Parts(plan, calls, flow, sizes).emit(nested(len(plan.steps), plan.controls), ())
    if plan.counted:
        _store_shapes(text, plan.outputs, sizes)
    text.emit("ret i32 0")
    return text.render()


@dataclass(frozen=True)
class _Parts:
    """Calls, loops and branches; each size that one tells is known to those behind it."""

    plan: ExecutionPlan
    calls: _Calls
    flow: Flow
    sizes: Sizes

    def emit(
        self,
        parts: Sequence[int | Inside[PlannedControl]],
        around: tuple[PlannedControl, ...],
    ) -> None:
        """Emit calls by their numbers, and loops and branches over calls.

        Args:
            around: The loops and branches that they are in.
        """
        for part in parts:
            if isinstance(part, int):
                self.calls.emit(part)
                told = self.plan.steps[part].tells
            else:
                if not around:
                    self.calls.prepare(part.control, self.plan.controls)
                self._control(part, around)
                told = part.control.tells
            own = [tells for tells in told if tells.depth == len(around)]
            for tells in own:
                _count(self.calls.text, tells.dim, self.calls.address(tells.place), self.sizes)
            if around and own:
                self.calls.prepare(around[-1], self.plan.controls)

    def _control(self, part: Inside[PlannedControl], around: tuple[PlannedControl, ...]) -> None:
        control = part.control
        bodies = part.split(control.middle) if isinstance(control, BranchSteps) else (part.parts,)
        emits = [partial(self.emit, body, (*around, control)) for body in bodies]
        self.flow.emit(control, self.calls.address, emits)


class _Calls:
    """Calls of *steps*, each of which returns its status from the function if that is not 0.

    Args:
        stamps: Where the time that each call takes is added up, if anywhere.
    """

    def __init__(
        self,
        text: FunctionText,
        steps: Sequence[PlanStep],
        address: Address,
        workspace: str,
        threads: str,
        stamps: str | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        most = max((len(step.args) + 1 for step in steps), default=1)
        self._arrays: dict[tuple[Dim, ...], str] = {}
        self._filled = set[tuple[Dim, ...]]()
        self._sizes = sizes
        self._table = text.define(f"alloca [{most} x ptr], align 8")
        self.text, self._steps, self.address = text, steps, address
        self._last = f"ptr {workspace}, i32 {threads}"
        self._stamps = stamps
        if stamps is not None:
            text.emit(f"call void @{START}(ptr {stamps}, i64 {len(steps)})")

    def prepare(self, control: PlannedControl, controls: Sequence[PlannedControl]) -> None:
        """Compute the extents that are used inside *control*, so that they are known on all paths.

        Those that depend on sizes that only calls inside it tell are left out.  Loops and branches
        inside it are among *controls*.
        """
        assert self._sizes is not None
        steps = self._steps[control.start : control.stop]
        extents = [extent for step in steps for arg in step.args for extent in arg.extents]
        inside = (c for c in controls if control.start <= c.start and c.stop <= control.stop)
        extents += [extent for c in inside for extent in c.extents]
        for extent in extents:
            if self._sizes.knows(dims_of([extent])):
                self._sizes.value(extent)
        for step in steps:
            self._array(step.dims)

    def _array(self, dims: tuple[Dim, ...]) -> list[str]:
        """The array of the sizes of *dims*, filled if these are known; none without dimensions.

        It is made where it is first asked for, outside of loops.
        """
        if not dims or self._sizes is None:
            return []
        if dims not in self._arrays:
            self._arrays[dims] = self._sizes.array(dims)
        if dims not in self._filled and self._sizes.knows(dims):
            self._filled.add(dims)
            self._sizes.fill(self._arrays[dims], dims)
        return [self._arrays[dims]]

    def emit(self, number: int) -> None:
        """Emit call *number*."""
        text, step = self.text, self._steps[number]
        own = self._array(step.dims)
        for position, place in enumerate([*map(self.address, step.args), *own]):
            text.emit(f"store ptr {place}, ptr {at(text, self._table, 8 * position)}, align 8")
        status = text.define(f"call i32 @{step.code.symbol}(ptr {self._table}, {self._last})")
        return_unless(text, f"icmp eq i32 {status}, 0", status)
        if self._stamps is not None:
            text.emit(f"call void @{SPENT}(ptr {self._stamps}, i64 {number + 1})")


def emit_calls(
    text: FunctionText, steps: Sequence[PlanStep], address: Address, workspace: str, threads: str
) -> None:
    """Call *steps* in order; return the first nonzero status, else 0."""
    calls = _Calls(text, steps, address, workspace, threads)
    for number in range(len(steps)):
        calls.emit(number)
    text.emit("ret i32 0")


def _count(text: FunctionText, dim: Dim, place: str, sizes: Sizes) -> None:
    """Let *dim* have the size at *place*, which must be in its range."""
    size = text.define(f"load i64, ptr {place}, align 8")
    above = text.define(f"sub i64 {size}, {dim.low}")
    require(text, f"icmp ule i64 {above}, {dim.high - dim.low}", Status.OUT_OF_BOUNDS)
    sizes.add(dim, size)


# Tensors


def _require_pointers(text: FunctionText, *pointers: str) -> None:
    for pointer in pointers:
        require(text, f"icmp ne ptr {pointer}, null", Status.NULL_POINTER)


def _tensor(text: FunctionText, table: str, number: int, port: Port, sizes: Sizes) -> str:
    """Load a tensor's data pointer and check that it is not null, unless the tensor is empty."""
    data = text.define(f"load ptr, ptr {at(text, table, number * TENSOR_BYTES)}, align 8")
    if isinstance(port.bytes, int):
        if port.bytes:
            require(text, f"icmp ne ptr {data}, null", Status.NULL_POINTER)
        return data
    is_empty = text.define(f"icmp eq i64 {sizes.count(port.shape)}, 0")
    is_there = text.define(f"icmp ne ptr {data}, null")
    require(text, f"or i1 {is_empty}, {is_there}", Status.NULL_POINTER)
    return data


def _sizes(text: FunctionText, plan: ExecutionPlan) -> Sizes:
    """Read the size of each dimension off the inputs' shapes, and check its range."""
    given: dict[Dim, str] = {}
    for told in plan.told:
        extent = extent_of(text, "%inputs", told.number, told.axis)
        given[told.dim], inside = emit_size(text, told, extent)
        require(text, f"icmp eq i1 {inside}, true", Status.WRONG_SHAPE)
    return Sizes(text, given)


def _check_inputs(text: FunctionText, plan: ExecutionPlan, sizes: Sizes) -> None:
    for number, port in enumerate(plan.inputs):
        if port.shape:
            given = [extent_of(text, "%inputs", number, axis) for axis in range(len(port.shape))]
            wrong = difference(text, given, list(map(sizes.value, port.shape)))
            require(text, f"icmp eq i64 {wrong}, 0", Status.WRONG_SHAPE)


def _check_capacity(text: FunctionText, number: int, port: Port, sizes: Sizes) -> None:
    """Check that an output's shape, as given, has as many elements as it will have.

    The shape as it will be passes at once.
    """
    if not port.shape:
        return
    wanted, count = list(map(sizes.value, port.shape)), sizes.count(port.shape)
    given = [extent_of(text, "%outputs", number, axis) for axis in range(len(port.shape))]
    other, enough = text.fresh_label("other"), text.fresh_label("enough")
    is_same = text.define(f"icmp eq i64 {difference(text, given, wanted)}, 0")
    text.branch_if(is_same, enough, other)
    text.start_block(other)
    capacity = reduce(lambda a, b: text.define(f"mul i64 {a}, {b}"), given)
    require(text, f"icmp sge i64 {capacity}, {count}", Status.TOO_SMALL)
    text.branch(enough)
    text.start_block(enough)


def _store_shapes(text: FunctionText, outputs: Sequence[Port], sizes: Sizes) -> None:
    for number, port in enumerate(outputs):
        for axis, extent in enumerate(port.shape):
            place = place_of(text, "%outputs", number, axis)
            text.emit(f"store i64 {sizes.value(extent)}, ptr {place}, align 8")
