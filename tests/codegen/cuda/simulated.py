"""A GPU in numpy: modules are definitions with their steps, which the interpreter runs.

It stands for the driver wherever the code around it is tested: memory is checked, launches take
the seconds a module says and the host some more to ask for them, graphs replay what was captured,
and a context that is lost stays lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.device.checks import Difference, NearBounds
from ansorpy.codegen.cuda.device.protocol import Order
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.launch.packed import packed
from ansorpy.codegen.cuda.launch.plan import Argument, Launch
from ansorpy.codegen.cuda.passes.split_kernels import KernelNest, kernel_nests, workspace_offsets
from ansorpy.codegen.llvm.objects.memory import arranged
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError, DeviceLost
from ansorpy.ir.interpret.lanes import Lanes
from ansorpy.ir.interpret.memory import Storage
from ansorpy.ir.interpret.program import Machine
from ansorpy.ir.loops import Buffer, Param, Program, Role, Stmt
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.target import Target

__all__ = ["STREAM", "SimulatedArray", "SimulatedDevice", "simulated_code"]

Array = npt.NDArray[Any]
GPU = Target.parse("sm_80")

STREAM = 4096
"""Handle of the stream that work runs on."""

LAUNCH_S = 1e-5
"""Seconds of the host to launch a kernel or a graph, while the GPU goes on with what it has."""
UPLOAD_S = 1e-3
"""Seconds by which the first launch of a graph takes longer."""
FILL_S = 1e-4
"""Seconds of the GPU to set a range of bytes."""


def simulated_code(
    state: State, symbol: str = "kernel", *, seconds: float = 0.002, fault: str = ""
) -> ObjectCode:
    """Object code of *state* for :class:`SimulatedDevice`: the real launch plan, no cubin.

    Each of its kernels takes *seconds*; *fault* names what its last kernel does wrong.
    """
    source = emit_cuda(lower(state, symbol).run, GPU, symbol)
    cubin = json.dumps(
        {
            "definition": dag_to_dict(state.definition), "steps": steps_to_json(state.history),
            "seconds": seconds, "fault": fault,
        }
    ).encode()  # fmt: skip
    return packed(CudaCode(source.text, cubin, source.plan, (), 0.01), symbol)


@dataclass
class _Module:
    program: Program
    nests: list[KernelNest]
    workspace: dict[int, Buffer]
    seconds: float
    fault: str


@dataclass
class SimulatedDevice:
    """See :class:`ansorpy.codegen.cuda.device.protocol.Device`; ``calls`` is what was asked for, in
    order.

    ``live`` are the allocations, ``launched`` the arguments of every launch that ran, ``modules``
    and ``graphs`` how many of them are loaded, ``clock`` when the GPU is done with what it was
    given, and ``host`` what time it is.
    """

    calls: list[str] = field(default_factory=list)
    live: dict[int, Array] = field(default_factory=dict)
    launched: list[tuple[int, ...]] = field(default_factory=list)
    modules: int = 0
    graphs: int = 0
    clock: float = 0.0
    host: float = 0.0
    number: int = 0
    lock: Lock = field(default_factory=Lock)
    _lost: str = ""
    _next: int = 1 << 20
    _uploaded: set[int] = field(default_factory=set)
    _captured: list[Callable[[], None]] | None = None

    def allocate(self, size: int) -> int:
        self._alive()
        address = self._next
        self._next += -(-(size + 256) // 256) * 256
        self.live[address] = np.full(size, 0x5A, np.uint8)
        return address

    def release(self, address: int) -> None:
        del self.live[address]

    def upload(self, address: int, source: Array) -> None:
        self._say("upload")
        assert self._captured is None and source.flags.c_contiguous
        self.bytes_at(address, source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def download(self, address: int, into: Array) -> None:
        self._say("download")
        assert self._captured is None
        into.reshape(-1).view(np.uint8)[:] = self.bytes_at(address, into.nbytes)

    def copy(self, address: int, source: int, size: int) -> None:
        self._say("copy")
        self.bytes_at(address, size)[:] = self.bytes_at(source, size)

    def fill(self, address: int, byte: int, size: int) -> None:
        self._say("fill")
        self.bytes_at(address, size)[:] = byte
        self.clock = max(self.clock, self.host) + FILL_S

    def equal(self, address: int, other: int, size: int) -> bool:
        self._say("equal")
        assert self._captured is None and address % 16 == other % 16 == 0
        return bool(np.array_equal(self.bytes_at(address, size), self.bytes_at(other, size)))

    def filled(self, ranges: Sequence[tuple[int, int]], byte: int) -> list[bool]:
        self._say("filled")
        return [bool((self.bytes_at(address, size) == byte).all()) for address, size in ranges]

    def difference(
        self, address: int, wanted: int, dtype: np.dtype[Any], count: int, bounds: NearBounds | None
    ) -> Difference:
        self._say("difference")
        got, want = (
            self.bytes_at(start, count * dtype.itemsize).view(dtype) for start in (address, wanted)
        )
        if dtype.kind in "iub":
            return Difference(0.0, int((got.view(np.uint8) != want.view(np.uint8)).sum()))
        wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        bits = np.dtype(f"u{dtype.itemsize}")
        is_gap = want.view(bits) == np.iinfo(bits).max
        a, b = got.astype(wide), want.astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(a - b)
        both = np.isfinite(a) & np.isfinite(b)
        agrees = both | (a == b) | (np.isnan(a) & np.isnan(b))
        wrong = np.where(is_gap, got.view(bits) != want.view(bits), ~agrees)
        if bounds is not None:
            rows = -(-count // bounds.row)
            allowed = self.bytes_at(bounds.address, rows * wide.itemsize).view(wide)
            with np.errstate(invalid="ignore"):
                wrong |= both & (off > np.repeat(allowed, bounds.row)[:count])
        return Difference(float(off.max(initial=0.0, where=both)), int(wrong.sum()))

    def load(self, cubin: bytes) -> _Module:
        self._say("load")
        self.modules += 1
        made = json.loads(cubin)
        state = State.replay(dag_from_dict(made["definition"]), steps_from_json(made["steps"]))
        program = lower(state).run
        offsets, _ = workspace_offsets(program.body)
        places = {offset: buffer for buffer, offset in offsets.items()}
        return _Module(program, kernel_nests(program.body), places, made["seconds"], made["fault"])

    def unload(self, module: object) -> None:
        self._alive()
        self.modules -= 1

    def launch(self, module: object, launch: Launch, values: Sequence[int]) -> None:
        assert isinstance(module, _Module)
        self._alive()
        work = _Work(self, module, launch, tuple(values))
        if self._captured is not None:
            self._captured.append(work.run)
            return
        self.calls.append(f"launch {launch.kernel}")
        self._asked(LAUNCH_S)
        work.run()

    def _asked(self, seconds: float) -> None:
        """The host takes *seconds* to ask for what comes next, which cannot begin before."""
        self.host += seconds
        self.clock = max(self.clock, self.host)

    def synchronise(self) -> None:
        self._say("synchronise")
        self.host = max(self.host, self.clock)

    def wait_for(self, stream: int) -> None:
        self._say(f"wait for {stream}")

    def follow(self, producer: Callable[[int], object]) -> None:
        self._say("follow")
        producer(STREAM)

    def seconds(self, work: Callable[[], None]) -> float:
        self._alive()
        began = max(self.clock, self.host)
        work()
        self.host = max(self.host, self.clock)
        return self.clock - began

    def seconds_each(self, works: Sequence[Callable[[], None]]) -> list[float]:
        self._say("seconds each")
        marks = [max(self.clock, self.host)]
        for work in works:
            work()
            marks.append(max(self.clock, marks[-1]))
        self.host = max(self.host, self.clock)
        return [end - begin for begin, end in pairwise(marks)]

    def capture(self, work: Callable[[], None]) -> object:
        self._say("capture")
        captured: list[Callable[[], None]] = []
        self._captured = captured
        work()
        self._captured = None
        self.graphs += 1
        return captured

    def overlap(self, works: Sequence[Callable[[], None]], orders: Sequence[Order]) -> None:
        """Do the work in a random order that is allowed."""
        self._say("overlap")
        left, rng = dict(enumerate(orders)), np.random.default_rng(len(self.calls))
        while left:
            ready = [
                n for n, order in left.items()
                if left.keys().isdisjoint(order.after)
                and all(left[m].branch != order.branch for m in left if m < n)
            ]  # fmt: skip
            chosen = int(rng.choice(ready))
            del left[chosen]
            works[chosen]()

    def replay(self, graph: object) -> None:
        self._say("replay")
        assert isinstance(graph, list)
        self._asked(LAUNCH_S if id(graph) in self._uploaded else LAUNCH_S + UPLOAD_S)
        self._uploaded.add(id(graph))
        for work in graph:
            work()

    def discard(self, graph: object) -> None:
        self._alive()
        self._uploaded.discard(id(graph))
        self.graphs -= 1

    def _say(self, call: str) -> None:
        self._alive()
        self.calls.append(call)

    def _alive(self) -> None:
        if self._lost:
            raise DeviceLost(self._lost)

    def lose(self, why: str) -> None:
        """The context becomes unusable, and what is asked of it fails from now on."""
        self._lost = f"the GPU's context is lost: {why}"
        raise DeviceLost(self._lost)

    def bytes_at(self, address: int, size: int) -> Array:
        """The memory there; the context is lost where nothing, or less, was allocated."""
        for start, memory in self.live.items():
            if start <= address and address + size <= start + len(memory):
                return memory[address - start : address - start + size]
        self.lose(f"an illegal memory access at {address:#x}")
        raise AssertionError

    def view(self, buffer: Buffer, address: int) -> Array:
        """The elements of *buffer* that lie at *address*, as the kernel sees them."""
        flat = self.bytes_at(address, buffer.span * buffer.dtype.bytes).view(buffer.dtype.numpy)
        return arranged(flat, buffer.shape, buffer.strides)


@dataclass(frozen=True)
class _Work:
    """One launch."""

    device: SimulatedDevice
    module: _Module
    launch: Launch
    values: tuple[int, ...]

    def run(self) -> None:
        module, device = self.module, self.device
        device.launched.append(self.values)
        number = int(self.launch.kernel.rsplit("_", 1)[1]) if len(module.nests) > 1 else 0
        device.clock += module.seconds
        if number == len(module.nests) - 1 and module.fault:
            self._fault(module.fault)
        machine, lanes = Machine(), Lanes.single()
        copies: list[tuple[Array, Array]] = []
        given, buffers, body = self._at_sizes(module.nests[number])
        assert kernel_nests(body)[0].grid == self.launch.grid
        for (argument, address), buffer in zip(given, buffers, strict=True):
            assert address % argument.alignment == 0, (argument, address)
            view = device.view(buffer, address)
            dense = np.ascontiguousarray(view)
            copies.append((view, dense))
            flat = dense.reshape(-1)
            machine.memory.storage[buffer] = Storage(flat, np.ones(flat.size, np.bool_))
            lanes = lanes.bind(buffer, 0)
        with np.errstate(all="ignore"):
            machine.run(body, lanes)
        for view, dense in copies:
            view[...] = dense
        if module.fault == "wrong":
            copies[-1][0].flat[0] += 1

    def _at_sizes(self, nest: KernelNest) -> tuple[list[tuple[Argument, int]], list[Buffer], Stmt]:
        """The pointers that the kernel gets, their buffers, and its body, at the call's sizes."""
        pairs = list(zip(self.launch.arguments, self.values, strict=True))
        dims = self.module.program.dims
        sizes = {dims[a.position]: size for a, size in pairs if a.place == "size"}
        given = [(a, value) for a, value in pairs if a.place != "size"]
        params = tuple(Param(self._buffer(a), Role.INPUT) for a, _ in given)
        found = program_at(Program("kernel", params, nest.body), sizes)
        return given, [param.buffer for param in found.params], found.body

    def _buffer(self, argument: Argument) -> Buffer:
        if argument.place == "parameter":
            return self.module.program.params[argument.position].buffer
        return self.module.workspace[argument.position]

    def _fault(self, fault: str) -> None:
        """What is not the kernel's own work: writing where it should not, dying, hanging."""
        last = self._buffer(self.launch.arguments[-1])
        end = self.values[-1] + last.span * last.dtype.bytes
        match fault:
            case "writes beyond":
                self.device.bytes_at(end, 4)[:] = 0
            case "writes before":
                self.device.bytes_at(self.values[-1] - 4, 4)[:] = 0
            case "writes its input":
                self.device.bytes_at(self.values[0], 4)[:] = 0
            case "illegal access":
                self.device.bytes_at(1 << 60, 4)
            case "refused":
                raise CodegenError("CUDA error: too many resources requested for launch")
            case "hangs":
                time.sleep(120)


@dataclass
class SimulatedArray:
    """An array in the memory of a :class:`SimulatedDevice`, as cupy and torch show theirs."""

    device: SimulatedDevice
    values: Array
    stream: int | None = None
    read_only: bool = False
    strides: tuple[int, ...] | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        self.address = self.device.allocate(self.values.nbytes + self.offset) + self.offset
        self.device.bytes_at(self.address, self.values.nbytes)[:] = self.values.reshape(-1).view(
            np.uint8
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.values.shape, "typestr": self.values.dtype.str, "version": 3,
            "data": (self.address, self.read_only), "strides": self.strides,
            "stream": self.stream,
        }  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def numpy(self) -> Array:
        """What the memory holds now."""
        held = self.device.bytes_at(self.address, self.values.nbytes)
        return held.view(self.values.dtype).reshape(self.values.shape).copy()
