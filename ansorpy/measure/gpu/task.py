"""One task on a GPU: uploads its inputs once, then checks and times its candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice

import numpy as np

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.protocol import Device, launch_all, repeat
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.codegen.cuda.passes.split_kernels import WORKSPACE_ALIGNMENT
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.once import run_once
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Role
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.gpu.guard import GuardedDeviceArray, intact
from ansorpy.measure.gpu.reference import DeviceReference
from ansorpy.measure.run.buffers import turns
from ansorpy.measure.run.inputs import drawn_inputs

__all__ = ["GpuTask"]

_GRAPH_S = 2.5e-4
"""Intended seconds of a graph of calls, at least half of which is reached: its launch, which takes
about 10 us, then overlaps with the graph before it."""
_GRAPH_CALLS = 1024
"""Maximum number of calls in a graph, unless there are more copies."""
_COPIES_S = 5e-3
"""Maximum seconds of one call on each copy.  A GPU can read its whole cache a hundred times in that
time, so the time to read a copy is negligible in such a call."""
_REST_S = 1.0
"""A GPU that has rested for longer may run at a low clock.  An H200 keeps its clock for 2 s at
least; without a context it falls from 1,980 to 345 MHz."""
_WAKE_S = 0.05
"""Seconds of work that raise the clock."""
_FILLS = 64
"""Fills between two readings of that time."""


class GpuTask:
    """Open task (:class:`ansorpy.measure.run.device.OpenTask`) whose candidates run on *device*."""

    def __init__(self, dag: ComputeDAG, seed: int, device: Device) -> None:
        self.device = device
        self._dag = dag
        self._values: dict[str, Array] = {}
        self.given: dict[str, GuardedDeviceArray] = {}
        for op, values in drawn_inputs(dag, seed):
            self._values[op.name] = values
            region = GuardedDeviceArray(device, op.shape, op.dtype.numpy, dag.strides.get(op.name))
            self.given[op.name] = region
        self.outputs = [
            GuardedDeviceArray(device, op.shape, op.dtype.numpy, dag.strides.get(op.name))
            for op in dag.outputs
        ]
        self._results: list[Array] | None = None
        self._references: dict[int, DeviceReference] = {}
        self._used = -math.inf
        """When the GPU last ran a candidate, by the monotonic clock."""
        self._upload()

    def _upload(self) -> None:
        for name, region in self.given.items():
            region.write(self._values[name])
            region.keep()

    @property
    def dag(self) -> ComputeDAG:
        return self._dag

    def values(self) -> Mapping[str, Array]:
        return self._values

    def results(self) -> Sequence[Array]:
        """Download the outputs.

        Raises:
            CodegenError: Something was written between their elements.
        """
        if self._results is None:
            read = [region.read() for region in self.outputs]
            if not all(is_intact for _, is_intact in read):
                raise CodegenError("it wrote between the elements of its outputs")
            self._results = [array for array, _ in read]
        return self._results

    def accepted_error(
        self, number: int, want: Array, allowed: float, *, by_block: bool, least: float
    ) -> float | None:
        """Compare an output on the GPU; *want* is uploaded the first time."""
        known = self._references.get(number)
        if known is None or known.want is not want:
            known = DeviceReference(self.device, self.outputs[number], want)
            self._references[number] = known
        return known.error(allowed, by_block=by_block, least=least)

    def is_disturbed(self) -> bool:
        """Always False: unlike a virtual core, a GPU is not shared, and its lock is held."""
        return False

    def recover(self) -> bool:
        """Upload everything again: a failed candidate may have written anywhere.

        Raises:
            DeviceLost: The candidate destroyed the context.
        """
        self.device.synchronise()
        self._references.clear()
        self._upload()
        return True

    def collect(self, others: Mapping[str, GuardedDeviceArray]) -> None:
        """Check the guards of the outputs and of *others*, and the inputs.

        Raises:
            CodegenError: Something was written outside the outputs.
        """
        self._results = None
        found = intact(self.device, [*self.outputs, *others.values()])
        if not all(found[: len(self.outputs)]):
            raise CodegenError("it wrote outside its outputs (found by the pattern around them)")
        for name, is_intact in zip(others, found[len(self.outputs) :], strict=True):
            if not is_intact:
                raise CodegenError(f"it wrote next to {name}")
        for name, region in self.given.items():
            if not region.is_kept():
                raise CodegenError(f"it wrote to its input {name}, or next to it")

    @contextmanager
    def load(self, built: Built) -> Iterator[_Candidate]:
        candidate = _Candidate(self, built)
        try:
            if time.monotonic() - self._used > _REST_S:
                self._wake()
            yield candidate
        finally:
            candidate.close()
            self._used = time.monotonic()

    def _wake(self) -> None:
        """Keep the GPU busy until its clock has risen."""
        busy_s = 0.0
        while busy_s < _WAKE_S:
            busy_s += self.device.seconds(lambda: repeat(_FILLS, self.outputs[0].poison))


class _Candidate:
    """A program loaded on the GPU, and the memory it owns."""

    def __init__(self, task: GpuTask, built: Built) -> None:
        self._task, self._device, self._built = task, task.device, built
        self._plan, cubin = PACKING.unpack(built.run.code)
        self._workspace = GuardedDeviceArray(task.device, (self._plan.workspace_bytes,), np.uint8)
        self._packed: dict[str, GuardedDeviceArray] = {}
        self._rows: list[list[int]] = []
        self._copies = 0
        self._unit = 1
        self._graph: object | None = None
        self._module = task.device.load(cubin)

    @property
    def fresh_bytes(self) -> int:
        return 0  # the check has touched all of it

    def close(self) -> None:
        """Unload the code and free the copies."""
        self._drop_graph()
        if self._copies:
            self._device.release(self._copies)
        self._copies = 0
        self._device.unload(self._module)

    def check(self) -> float:
        if self._built.bind is not None:
            self._bind(self._built.bind)
        regions = self._arguments()
        for region in (*self._task.outputs, self._workspace):
            region.poison()
        row = [region.address for region in regions]
        seconds = self._device.seconds(lambda: self._launch(row))
        self._task.collect({**self._packed, "its workspace": self._workspace})
        return seconds

    def prepare(self, reuse_distance_bytes: int) -> None:
        regions = self._arguments()
        row = [region.address for region in regions]
        self._rows = [row]
        call_s = self._sized()
        params = self._built.run_params
        cold = [n for n, spec in enumerate(params) if spec.role is Role.CONSTANT]
        starts, pitch = _layout([regions[n] for n in cold])
        copies = min(turns(reuse_distance_bytes, pitch), max(1, int(_COPIES_S / call_s)))
        if copies == 1:
            return
        self._rows = [list(row) for _ in range(copies)]
        self._copies = self._device.allocate(copies * pitch)
        for copy, places in enumerate(self._rows):
            for n, start in zip(cold, starts, strict=True):
                places[n] = self._copies + copy * pitch + start
                self._device.copy(places[n], row[n], regions[n].nbytes)
        self._capture(-(-self._unit // copies) * copies)

    def _sized(self) -> float:
        """Capture a graph that runs long enough; returns the seconds per call."""
        calls = 1
        while True:
            self._capture(calls)
            seconds = max(self.burst(calls), 1e-9)
            if seconds >= _GRAPH_S / 2 or calls == _GRAPH_CALLS:
                return seconds / calls
            calls = min(_GRAPH_CALLS, math.ceil(calls * _GRAPH_S / seconds))

    def _capture(self, calls: int) -> None:
        """Capture a graph of this many calls, which use the copies in turn."""
        self._drop_graph()
        self._unit = calls
        rows = islice(cycle(self._rows), calls)

        def launched() -> None:
            for row in rows:
                self._launch(row)

        self._graph = self._device.capture(launched)

    def _drop_graph(self) -> None:
        if self._graph is not None:
            self._device.discard(self._graph)
        self._graph = None

    @property
    def unit(self) -> int:
        return self._unit

    def burst(self, number: int) -> float:
        """Seconds of *number* calls, from a graph of :attr:`unit` calls.

        The first event follows one untimed replay, so no launch latency falls between the events;
        that replay also uploads a new graph to the GPU.
        """
        assert number % self._unit == 0, (number, self._unit)
        replay = partial(self._device.replay, self._graph)
        replay()
        return self._device.seconds(lambda: repeat(number // self._unit, replay))

    def _launch(self, row: Sequence[int]) -> None:
        sizes = self._built.sizes
        launch_all(self._device, self._module, self._plan, row, self._workspace.address, sizes)

    def _bind(self, bind: ObjectCode) -> None:
        """Pack the constants on the CPU, as the runtime does, and upload them."""
        arrays = []
        for spec in self._built.bind_params:
            array = aligned_empty(spec.shape, spec.dtype.numpy)
            if spec.role is not Role.OUTPUT:
                array[...] = self._task.values()[spec.name]
            arrays.append(array)
        run_once(bind, arrays)
        for spec, array in zip(self._built.bind_params, arrays, strict=True):
            if spec.role is Role.OUTPUT:
                region = GuardedDeviceArray(self._device, spec.shape, spec.dtype.numpy)
                region.write(array)
                self._packed[spec.name] = region

    def _arguments(self) -> list[GuardedDeviceArray]:
        """One region per parameter of ``run``, in calling order."""
        outputs = iter(self._task.outputs)
        found = []
        for spec in self._built.run_params:
            region = (
                next(outputs, None) if spec.role is Role.OUTPUT
                else self._packed.get(spec.name) or self._task.given.get(spec.name)
            )  # fmt: skip
            if region is None or not _fits(spec, region):
                raise CodegenError(f"parameter {spec.name} does not fit the task: {spec}")
            found.append(region)
        return found


def _layout(regions: Sequence[GuardedDeviceArray]) -> tuple[list[int], int]:
    """Return the offset of each region within one copy of all regions, and the copy's bytes."""
    starts, size = [], 0
    for region in regions:
        starts.append(size)
        size += -(-region.nbytes // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
    return starts, size


def _fits(spec: ParamSpec, region: GuardedDeviceArray) -> bool:
    given = (region.shape, region.dtype, region.strides)
    return given == (spec.shape, spec.dtype.numpy, spec.strides)
