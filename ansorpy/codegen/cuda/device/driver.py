"""GPU access through cupy's bindings of the CUDA driver and runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from itertools import pairwise
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.checks import (
    ASKED_BYTES,
    DIFFERS,
    SOURCE,
    Difference,
    NearBounds,
    difference_launch,
    difference_question,
    filled_launch,
    filled_questions,
    read_difference,
)
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.device.protocol import Order
from ansorpy.codegen.cuda.device.tensor_maps import tensor_map
from ansorpy.codegen.cuda.launch.plan import Launch
from ansorpy.codegen.singletons import singleton
from ansorpy.errors import AnsorpyError, CodegenError, DeviceLost, MissingDependency
from ansorpy.target import Target

__all__ = ["CudaDevice", "bus_place", "device_for"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass
class _Module:
    handle: int
    functions: dict[str, int] = field(default_factory=dict)


def _on_device(
    method: Callable[Concatenate[CudaDevice, _P], _R],
) -> Callable[Concatenate[CudaDevice, _P], _R]:
    """Make the GPU current in the calling thread for *method*, and convert CUDA errors to ours."""

    @wraps(method)
    def wrapped(self: CudaDevice, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        before = self._context
        try:
            before = self.driver.ctxGetCurrent()
            if before != self._context:
                self.driver.ctxSetCurrent(self._context)
            return method(self, *args, **kwargs)
        except self.errors as error:
            raise self.failure(error) from error
        finally:
            if before != self._context:
                with suppress(*self.errors):
                    self.driver.ctxSetCurrent(before)

    return wrapped


class CudaDevice:
    """GPU *number*, with its own stream; see
    :class:`ansorpy.codegen.cuda.device.protocol.Device`.

    Between calls, the calling thread has the GPU current that it had before, or none.

    Raises:
        MissingDependency: cupy is not installed, or there is no such GPU.
    """

    def __init__(self, number: int = 0) -> None:
        try:
            from cupy.cuda import driver, runtime
        except ImportError as error:
            raise MissingDependency(
                f"using a GPU requires cupy, which is not installed ({error})",
                hint="pip install 'ansorpy[cuda]'",
            ) from error
        self.number = number
        self.lock = Lock()
        self._is_capturing = False
        self._sides: list[int] = []
        self._marks: list[int] = []
        self._checks: tuple[object, int] | None = None
        self.driver: Any = driver
        self.runtime: Any = runtime
        self.errors = (runtime.CUDARuntimeError, driver.CUDADriverError)
        try:
            # The runtime's choice of a GPU lasts as long as the thread: to undo it would make a
            # context on the GPU chosen before, even if nobody uses that.
            with ThreadPoolExecutor(1) as apart:
                apart.submit(self._open).result()
        except self.errors as error:
            raise MissingDependency(
                f"GPU {number} cannot be used ({error})", hint="run nvidia-smi to see its state"
            ) from error

    def _open(self) -> None:
        self.runtime.setDevice(self.number)
        self._stream = self.runtime.streamCreateWithFlags(self.runtime.streamNonBlocking)
        self._events = [self.runtime.eventCreate() for _ in range(2)]
        self._waited = self.runtime.eventCreateWithFlags(self.runtime.eventDisableTiming)
        self._context = self.driver.ctxGetCurrent()

    def failure(self, error: Exception) -> AnsorpyError:
        """Our exception for *error*; if the error is sticky, the context is lost.

        While a graph is being captured, this is not tested: synchronising would end the capture.
        """
        if self._is_capturing:
            return CodegenError(f"CUDA error: {error}")
        try:
            self.runtime.deviceSynchronize()
        except self.errors as stays:
            return DeviceLost(f"the GPU's context is lost: {stays}")
        return CodegenError(f"CUDA error: {error}")

    @_on_device
    def allocate(self, size: int) -> int:
        address: int = self.runtime.malloc(max(1, size))
        return address

    @_on_device
    def release(self, address: int) -> None:
        self.runtime.free(address)

    @_on_device
    def upload(self, address: int, source: Array) -> None:
        kind = self.runtime.memcpyHostToDevice
        self.runtime.memcpyAsync(address, source.ctypes.data, source.nbytes, kind, self._stream)
        self.runtime.streamSynchronize(self._stream)

    @_on_device
    def download(self, address: int, into: Array) -> None:
        kind = self.runtime.memcpyDeviceToHost
        self.runtime.memcpyAsync(into.ctypes.data, address, into.nbytes, kind, self._stream)
        self.runtime.streamSynchronize(self._stream)

    @_on_device
    def copy(self, address: int, source: int, size: int) -> None:
        kind = self.runtime.memcpyDeviceToDevice
        self.runtime.memcpyAsync(address, source, size, kind, self._stream)

    @_on_device
    def fill(self, address: int, byte: int, size: int) -> None:
        self.runtime.memsetAsync(address, byte, size, self._stream)

    @_on_device
    def equal(self, address: int, other: int, size: int) -> bool:
        return not self._answer(DIFFERS, (address, other), np.array([size, 0], np.uint64))[1]

    @_on_device
    def filled(self, ranges: Sequence[tuple[int, int]], byte: int) -> list[bool]:
        found: list[bool] = []
        for question in filled_questions(ranges):
            answer = self._answer(filled_launch(question), (byte,), question)
            found += [not differs for differs in answer[:, 2]]
        return found

    @_on_device
    def difference(
        self, address: int, wanted: int, dtype: np.dtype[Any], count: int, bounds: NearBounds | None
    ) -> Difference:
        given = (address, wanted, bounds.address if bounds else 0)
        question = difference_question(count, bounds)
        return read_difference(self._answer(difference_launch(dtype), given, question))

    def _answer(
        self, launch: Launch, given: Sequence[int], asked: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint64]:
        """Run a kernel of :mod:`ansorpy.codegen.cuda.device.checks`; returns its answer."""
        if self._checks is None:
            cubin, _ = compile_source(SOURCE, self._target())
            self._checks = self.load(cubin), self.allocate(ASKED_BYTES)
        module, place = self._checks
        self.upload(place, asked)
        self.launch(module, launch, (*given, place))
        self.download(place, asked)
        return asked

    def _target(self) -> Target:
        """The target of code for this GPU."""
        found = self.runtime.getDeviceProperties(self.number)
        return Target.parse(f"sm_{found['major']}{found['minor']}")

    @_on_device
    def load(self, cubin: bytes) -> _Module:
        return _Module(self.driver.moduleLoadData(cubin))

    @_on_device
    def unload(self, module: object) -> None:
        assert isinstance(module, _Module), module
        self.driver.moduleUnload(module.handle)

    @_on_device
    def launch(self, module: object, launch: Launch, values: Sequence[int]) -> None:
        assert isinstance(module, _Module), module
        held = np.array(values, dtype=np.uint64)  # of a size, a kernel may read the low half only
        pointers = np.arange(len(values), dtype=np.uint64) * 8 + np.uint64(held.ctypes.data)
        maps = [
            (n, tensor_map(values[n], argument.boxes))
            for n, argument in enumerate(launch.arguments)
            if argument.boxes is not None
        ]
        for n, made in maps:
            pointers[n] = made.ctypes.data
        self.driver.launchKernel(
            self._function(module, launch), *launch.grid, *launch.block,
            launch.dynamic_shared_bytes, self._stream, pointers.ctypes.data, 0,
        )  # fmt: skip

    def _function(self, module: _Module, launch: Launch) -> int:
        function = module.functions.get(launch.kernel)
        if function is None:
            function = self.driver.moduleGetFunction(module.handle, launch.kernel)
            if launch.dynamic_shared_bytes:
                most = self.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                self.driver.funcSetAttribute(function, most, launch.dynamic_shared_bytes)
            module.functions[launch.kernel] = function
        return function

    @_on_device
    def synchronise(self) -> None:
        self.runtime.streamSynchronize(self._stream)

    @_on_device
    def wait_for(self, stream: int) -> None:
        self.runtime.eventRecord(self._waited, stream)
        self.runtime.streamWaitEvent(self._stream, self._waited)

    @_on_device
    def follow(self, producer: Callable[[int], object]) -> None:
        producer(self._stream)

    @_on_device
    def seconds(self, work: Callable[[], None]) -> float:
        [elapsed_s] = self.seconds_each([work])
        return elapsed_s

    @_on_device
    def seconds_each(self, works: Sequence[Callable[[], None]]) -> list[float]:
        while len(self._events) <= len(works):
            self._events.append(self.runtime.eventCreate())
        events = self._events[: len(works) + 1]
        self.runtime.eventRecord(events[0], self._stream)
        for work, event in zip(works, events[1:], strict=True):
            work()
            self.runtime.eventRecord(event, self._stream)
        self.runtime.eventSynchronize(events[-1])
        return [self.runtime.eventElapsedTime(*pair) * 1e-3 for pair in pairwise(events)]

    @_on_device
    def capture(self, work: Callable[[], None]) -> int:
        # Relaxed, because a finalizer may free memory meanwhile, which other modes forbid.
        self.runtime.streamBeginCapture(self._stream, self.runtime.streamCaptureModeRelaxed)
        self._is_capturing = True
        try:
            work()
        except BaseException:
            with suppress(*self.errors):
                self.runtime.graphDestroy(self.runtime.streamEndCapture(self._stream))
            raise
        finally:
            self._is_capturing = False
        graph = self.runtime.streamEndCapture(self._stream)
        try:
            found: int = self.runtime.graphInstantiate(graph)
            return found
        finally:
            self.runtime.graphDestroy(graph)

    @_on_device
    def overlap(self, works: Sequence[Callable[[], None]], orders: Sequence[Order]) -> None:
        main, used = self._stream, 1 + max((order.branch for order in orders), default=0)
        awaited = {n for order in orders for n in order.after}
        streams = [main, *self._side_streams(used - 1)]
        done: dict[int, int] = {}
        events = self._side_events(len(awaited) + used)
        try:
            self._pass_on(next(events), main, streams[1:])
            for number, (work, order) in enumerate(zip(works, orders, strict=True)):
                self._stream = streams[order.branch]
                for earlier in order.after:
                    self.runtime.streamWaitEvent(self._stream, done[earlier])
                work()
                if number in awaited:
                    done[number] = next(events)
                    self.runtime.eventRecord(done[number], self._stream)
        finally:
            self._stream = main
        for stream in streams[1:]:
            self._pass_on(next(events), stream, [main])

    def _pass_on(self, event: int, stream: int, others: Sequence[int]) -> None:
        """Make later work on *others* wait for the work enqueued so far on *stream*."""
        self.runtime.eventRecord(event, stream)
        for other in others:
            self.runtime.streamWaitEvent(other, event)

    def _side_streams(self, number: int) -> list[int]:
        while len(self._sides) < number:
            self._sides.append(self.runtime.streamCreateWithFlags(self.runtime.streamNonBlocking))
        return self._sides[:number]

    def _side_events(self, number: int) -> Iterator[int]:
        flags = self.runtime.eventDisableTiming
        while len(self._marks) < number:
            self._marks.append(self.runtime.eventCreateWithFlags(flags))
        return iter(self._marks[:number])

    @_on_device
    def replay(self, graph: object) -> None:
        self.runtime.graphLaunch(graph, self._stream)

    @_on_device
    def discard(self, graph: object) -> None:
        self.runtime.graphExecDestroy(graph)


def device_for(target: Target) -> CudaDevice:
    """This process's GPU that runs code for *target*.

    Raises:
        MissingDependency: There is none.
    """
    numbers = target.gpus()
    if not numbers:
        raise MissingDependency(f"this machine has no GPU that runs code for {target.cpu}")
    return _opened(numbers[0])


@singleton
def _opened(number: int) -> CudaDevice:
    return CudaDevice(number)


def bus_place(number: int) -> str:
    """Bus address of GPU *number*, which is the same in every process, unlike the number."""
    from cupy.cuda import runtime

    place: str = runtime.deviceGetPCIBusId(number)
    return place
