"""Run a plan on a GPU: code and constants uploaded once, calls replayed as one CUDA graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.cuda.device.protocol import Device, launch_all, repeat
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.codegen.cuda.launch.plan import ALIGNMENT, LaunchPlan
from ansorpy.errors import DeviceLost
from ansorpy.ir.extents import most
from ansorpy.ir.sizes import at, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.gpu.branches import ordered, workspaces
from ansorpy.runtime.gpu.operands import DeviceOperand, operand
from ansorpy.runtime.sharing import refuse_overlap
from ansorpy.runtime.sizes import Ports, SizedPorts, sizes_told

__all__ = ["GpuExecutable", "PreparedRun", "TimedGpuExecutable"]

_MAX_GRAPHS = 16
"""Number of sets of addresses and sizes for which graphs are kept."""

_MAX_RUNS_BEFORE = 256
"""Maximum number of untimed runs before a run whose calls are timed."""

_TIMED_RUNS = 16
"""Maximum number of runs captured in one graph for timing."""

Addresses = tuple[int, ...]
Sizes = Mapping[Dim, int]
_Seen = dict[tuple[Addresses, tuple[int, ...]], object | None]
"""Addresses and sizes of runs, and the graph of these launches, if there is one."""


@dataclass(frozen=True)
class PreparedRun:
    """A run with its arrays in place: calling it computes the outputs and waits for them.

    ``seconds(n)`` returns the GPU time of n consecutive runs.
    """

    run: Callable[[], None]
    seconds: Callable[[int], float]

    def __call__(self) -> None:
        self.run()


class GpuExecutable:
    """A loaded program.  Any number of Python threads may call it; all runs on the GPU take turns.

    Tensors in host memory are copied to and from staging buffers; those in GPU memory are used in
    place.  The first run with a set of addresses and sizes launches the kernels one by one, the
    second captures a graph, and later ones replay it.  In a graph, calls that do not depend on each
    other may overlap.  Memory has room for the largest sizes.

    Args:
        plan: The calls and the memory they use; its constants are in *pool*.
        pool: The constants as the kernels read them.
    """

    def __init__(self, plan: ExecutionPlan, pool: npt.NDArray[np.uint8], device: Device) -> None:
        self._plan = plan
        self._device = device
        self._modules: dict[str, tuple[LaunchPlan, object]] = {}
        self._sized = SizedPorts.of(plan.inputs, plan.outputs)
        self._starts = plan.slot_starts
        self._orders = ordered(plan)
        self._seen: _Seen = {}
        self._held: list[int] = []
        with device.lock:
            self._load(pool)

    def _load(self, pool: npt.NDArray[np.uint8]) -> None:
        """Load the code and the constants, and allocate all memory."""
        plan, device = self._plan, self._device
        loaded: list[object] = []
        held = (device, self._seen, loaded, self._held)
        weakref.finalize(self, _give_back, *held).atexit = False
        for step in plan.steps:
            if step.code.digest not in self._modules:
                launches, cubin = PACKING.unpack(step.code.code)
                loaded.append(device.load(cubin))
                self._modules[step.code.digest] = (launches, loaded[-1])
        self._pool = self._memory(pool.nbytes)
        device.upload(self._pool, pool)
        self._arena = self._memory(plan.arena_bytes)
        self._workspaces = [*map(self._memory, workspaces(plan.steps, self._orders))]
        self._staged = [self._memory(most(port.bytes)) for port in (*plan.inputs, *plan.outputs)]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], threads: int = 1) -> list[Any]:
        """Compute the outputs from *inputs*, in the ports' order, and return them.

        Args:
            inputs: Arrays in host or GPU memory.
            outputs: Arrays to write to; ``None`` allocates a new host array.
            threads: CPU threads; ignored.

        Raises:
            UsageError: An array has the wrong shape, type or layout, or is on another GPU, or an
                output shares memory with another one, or with an input in GPU memory.
            DeviceLost: The GPU's context became unusable.
        """
        ports, sizes = self._at(inputs)
        results = [
            np.empty(port.shape, port.dtype) if given is None else given
            for port, given in zip(ports[1], outputs, strict=True)
        ]
        self._run(self._operands(ports, inputs, results), sizes)
        return results

    def prepare(
        self, inputs: Sequence[Any], outputs: Sequence[Any], threads: int = 1
    ) -> PreparedRun:
        """Return a run that can be repeated on these arrays.

        Raises:
            UsageError: As :meth:`run`.
        """
        ports, sizes = self._at(inputs)
        operands = self._operands(ports, inputs, outputs)
        return PreparedRun(
            lambda: self._run(operands, sizes), lambda n: self._seconds(operands, sizes, n)
        )

    def reserve(self, threads: int) -> None:
        """Do nothing: all memory is allocated on construction."""

    def _at(self, inputs: Sequence[Any]) -> tuple[Ports, Sizes]:
        """The ports for *inputs*, and the sizes that these state."""
        if self._sized is None:
            return (self._plan.inputs, self._plan.outputs), {}
        ports = self._sized.at(inputs)
        return ports, sizes_told(ports[0], self._sized.told, [port.shape for port in ports[0]])

    def _seconds(self, operands: Sequence[DeviceOperand], sizes: Sizes, number: int) -> float:
        """GPU seconds of *number* consecutive runs, without the copies around them.

        Several runs form one graph, because launching a graph takes longer than the shortest
        kernels.
        """
        self._run(operands, sizes)
        device, calls = self._device, min(number, _TIMED_RUNS)
        replays = max(1, round(number / calls))
        with device.lock:
            addresses = tuple(map(self._address, operands, self._staged))
            graph = device.capture(lambda: repeat(calls, lambda: self._overlap(addresses, sizes)))
            device.replay(graph)  # keeps the GPU busy while the timed launches are enqueued
            seconds = device.seconds(lambda: repeat(replays, lambda: device.replay(graph)))
            device.discard(graph)
        return seconds * number / (replays * calls)

    def _operands(
        self, ports: Ports, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> list[DeviceOperand]:
        gpu = self._device.number
        found = [operand("input", p, a, gpu=gpu) for p, a in zip(ports[0], inputs, strict=True)]
        for port, array in zip(ports[1], outputs, strict=True):
            found.append(operand("output", port, array, written=True, gpu=gpu))
        numbered = enumerate(found, -len(inputs))
        # Inputs in host memory are copied before anything is written.
        refuse_overlap(ports[1], [
            (o.address, o.address + o.nbytes, n) for n, o in numbered if o.host is None or n >= 0
        ])  # fmt: skip
        return found

    def _run(self, operands: Sequence[DeviceOperand], sizes: Sizes) -> None:
        device, inputs = self._device, len(self._plan.inputs)
        with device.lock:
            addresses = tuple(map(self._address, operands, self._staged))
            for stream in {given.stream for given in operands if given.stream is not None}:
                device.wait_for(stream)
            for producer in (given.producer for given in operands if given.producer is not None):
                device.follow(producer)
            for given, address in zip(operands[:inputs], addresses, strict=False):
                self._fetch(given, address)
            self._go(addresses, sizes)
            for given, address in zip(operands[inputs:], addresses[inputs:], strict=True):
                if given.host is not None:
                    device.download(address, given.host)
                elif given.address != address:
                    device.copy(given.address, address, given.nbytes)
            device.synchronise()

    def _address(self, given: DeviceOperand, staged: int) -> int:
        """The address the kernels use: the tensor's own if they can access it, else *staged*."""
        usable = given.host is None and given.address % ALIGNMENT == 0
        return given.address if usable else staged

    def _fetch(self, given: DeviceOperand, address: int) -> None:
        """Copy an input's values to *address* if they are not there yet."""
        if given.host is not None:
            self._device.upload(address, given.host)
            return
        if given.address != address:
            self._device.copy(address, given.address, given.nbytes)

    def _go(self, addresses: Addresses, sizes: Sizes) -> None:
        """Run the kernels on the inputs and outputs at *addresses*."""
        key = addresses, tuple(sizes.values())
        if key not in self._seen:
            self._seen[key] = None
            self._forget_old()
            self._launch(addresses, sizes)
            return
        graph = self._seen.pop(key)
        if graph is None:
            graph = self._device.capture(lambda: self._overlap(addresses, sizes))
        self._seen[key] = graph
        self._device.replay(graph)

    def _forget_old(self) -> None:
        """Drop the least recently used graph when there are too many."""
        if len(self._seen) > _MAX_GRAPHS:
            graph = self._seen.pop(next(iter(self._seen)))
            if graph is not None:
                self._device.discard(graph)

    def _launch(self, addresses: Addresses, sizes: Sizes) -> None:
        for work in self._works(addresses, sizes):
            work()

    def _overlap(self, addresses: Addresses, sizes: Sizes) -> None:
        if len(self._workspaces) == 1:
            self._launch(addresses, sizes)
        else:
            self._device.overlap(self._works(addresses, sizes), self._orders)

    def _works(self, addresses: Addresses, sizes: Sizes) -> list[Callable[[], None]]:
        """A function for each call, which launches its kernels."""
        return [
            partial(self._launch_step, step, self._workspaces[order.branch], addresses, sizes)
            for step, order in zip(self._plan.steps, self._orders, strict=True)
        ]

    def _launch_step(
        self, step: PlanStep, workspace: int, addresses: Addresses, sizes: Sizes
    ) -> None:
        launches, module = self._modules[step.code.digest]
        places = [self._place(argument, addresses, sizes) for argument in step.args]
        stated = [sizes[dim] for dim in step.dims]
        launch_all(self._device, module, launches, places, workspace, stated)

    def _place(self, argument: Argument, addresses: Addresses, sizes: Sizes) -> int:
        match argument.region:
            case MemoryRegion.INPUT:
                base = addresses[argument.number]
            case MemoryRegion.OUTPUT:
                base = addresses[len(self._plan.inputs) + argument.number]
            case MemoryRegion.ARENA:
                base = self._arena + (self._starts[argument.number] if self._starts else 0)
            case MemoryRegion.POOL:
                base = self._pool
            case MemoryRegion.RAW | MemoryRegion.SCRATCH:
                raise AssertionError("no call of a run reads data that only packing needs")
        return base + fixed(at(argument.offset, sizes))

    def _memory(self, size: int) -> int:
        """Allocate *size* bytes on the GPU that live as long as this object."""
        self._held.append(self._device.allocate(size))
        return self._held[-1]


class TimedGpuExecutable(GpuExecutable):
    """A program whose calls are timed within whole runs; ``spent_ns`` are those of the last one.

    The kernels are launched one by one with an event after each call.  Untimed runs precede them,
    during which the CPU enqueues the launches, so the GPU waits for none.  The event itself adds
    about a microsecond to each call, and calls that may overlap do not.
    """

    def __init__(self, plan: ExecutionPlan, pool: npt.NDArray[np.uint8], device: Device) -> None:
        super().__init__(plan, pool, device)
        self.spent_ns = np.zeros(len(plan.steps), np.int64)
        self._runs_before = 1

    def _go(self, addresses: Addresses, sizes: Sizes) -> None:
        for _ in range(self._runs_before):
            super()._go(addresses, sizes)
        begin = enqueued = perf_counter()

        def launched(work: Callable[[], None]) -> None:
            nonlocal enqueued
            work()
            enqueued = perf_counter()

        works = [partial(launched, work) for work in self._works(addresses, sizes)]
        seconds = self._device.seconds_each(works)
        self.spent_ns[:] = [round(each * 1e9) for each in seconds]
        run_s = max(sum(seconds), 1e-6)
        self._runs_before = min(_MAX_RUNS_BEFORE, 1 + ceil((enqueued - begin) / run_s))


def _give_back(
    device: Device,
    seen: _Seen,
    modules: Sequence[object],
    addresses: Sequence[int],
) -> None:
    """Release everything a program holds; if the context is lost, the exit of the process does."""
    with suppress(DeviceLost):
        for graph in seen.values():
            if graph is not None:
                device.discard(graph)
        for module in modules:
            device.unload(module)
        for address in addresses:
            device.release(address)
