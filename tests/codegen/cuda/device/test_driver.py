"""What the driver makes of CUDA's errors, with a runtime that has no GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from threading import local
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.checks import Difference, NearBounds
from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.protocol import Order
from ansorpy.codegen.cuda.launch.plan import Launch
from ansorpy.errors import CodegenError, DeviceLost
from ansorpy.target import Target


class RuntimeFailure(Exception):
    """As cupy raises it."""


class Runtime:
    """CUDA's runtime as far as the driver asks for it; ``said`` are the calls."""

    CUDARuntimeError = RuntimeFailure
    streamNonBlocking = 1
    eventDisableTiming = 2
    streamCaptureModeThreadLocal = 1
    streamCaptureModeRelaxed = 2

    def __init__(self) -> None:
        self.said: list[tuple[str, tuple[Any, ...]]] = []
        self.refused: set[str] = set()
        self.contexts: set[int] = set()
        self.thread = local()

    def setDevice(self, number: int) -> None:  # noqa: N802 (cupy's)
        self.thread.chosen, self.thread.context = number, context_of(number)
        self.contexts.add(context_of(number))

    def getDeviceProperties(self, number: int) -> dict[str, int]:  # noqa: N802 (cupy's)
        return {"major": 9, "minor": 0}

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> int:
            self.said.append((name, given))
            if name in self.refused:
                raise RuntimeFailure(f"{name} fails")
            return 7

        return call


class Driver:
    """CUDA's driver: the contexts of the threads of *runtime*; 0 is none."""

    CUDADriverError = RuntimeFailure

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def ctxGetCurrent(self) -> int:  # noqa: N802 (cupy's)
        return getattr(self.runtime.thread, "context", 0)

    def ctxSetCurrent(self, context: int) -> None:  # noqa: N802 (cupy's)
        if "ctxSetCurrent" in self.runtime.refused:
            raise RuntimeFailure("ctxSetCurrent fails")
        self.runtime.thread.context = context


def context_of(number: int) -> int:
    return 100 + number


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    runtime = Runtime()
    driver = Driver(runtime)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(runtime=runtime, driver=driver))
    yield runtime


def names(runtime: Runtime) -> list[str]:
    return [name for name, _ in runtime.said]


def test_an_error_that_stays_is_a_lost_device_wherever_it_shows(runtime: Runtime) -> None:
    device = CudaDevice()
    runtime.refused = {"malloc"}
    with pytest.raises(CodegenError, match="CUDA error: malloc fails"):
        device.allocate(8)
    runtime.refused = {"ctxSetCurrent", "deviceSynchronize"}
    with pytest.raises(DeviceLost, match="context is lost: deviceSynchronize fails"):
        device.allocate(8)


def test_memory_may_be_given_back_while_a_graph_is_captured(runtime: Runtime) -> None:
    device = CudaDevice()
    assert device.capture(lambda: device.release(8)) == 7
    [(_, (_, mode))] = [call for call in runtime.said if call[0] == "streamBeginCapture"]
    assert mode == runtime.streamCaptureModeRelaxed


def test_what_is_refused_during_a_capture_ends_it_without_waiting(runtime: Runtime) -> None:
    device = CudaDevice()
    runtime.refused = {"memsetAsync", "streamEndCapture", "deviceSynchronize"}
    with pytest.raises(CodegenError, match="CUDA error: memsetAsync fails"):
        device.capture(lambda: device.fill(8, 0, 4))
    assert names(runtime)[-1] == "streamEndCapture" and "deviceSynchronize" not in names(runtime)
    runtime.refused = set()
    assert device.capture(lambda: device.fill(8, 0, 4)) == 7


def test_producers_are_told_the_stream_with_the_gpu_current(runtime: Runtime) -> None:
    device = CudaDevice(3)
    runtime.said.clear()
    device.follow(lambda stream: runtime.said.append(("told", (stream, runtime.thread.context))))
    assert runtime.said == [("told", (7, context_of(3)))]


def test_the_gpu_that_was_current_is_so_again(runtime: Runtime) -> None:
    runtime.setDevice(1)
    device = CudaDevice(3)
    seen: list[int] = []

    def nested(stream: int) -> None:
        device.release(8)
        seen.append(runtime.thread.context)

    device.follow(nested)
    assert (seen, runtime.thread.context) == ([context_of(3)], context_of(1))
    runtime.refused = {"malloc"}
    with pytest.raises(CodegenError, match="malloc fails"):
        device.allocate(8)
    assert runtime.thread.context == context_of(1)


def test_no_context_is_made_on_another_gpu(runtime: Runtime) -> None:
    """A thread that has no GPU current has none later, and still chooses GPU 0 unless told."""
    device = CudaDevice(3)
    device.allocate(8)
    assert runtime.contexts == {context_of(3)}
    assert not runtime.thread.context and not hasattr(runtime.thread, "chosen")


def test_memory_is_compared_on_the_gpu(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CudaDevice()
    asked: list[tuple[str, tuple[int, ...]]] = []
    answer = 0

    def download(self: CudaDevice, address: int, into: Any) -> None:
        assert into.tolist() == [100, 0]
        into[1] = answer

    def launch(self: CudaDevice, module: object, launch: Launch, addresses: Sequence[int]) -> None:
        asked.append((launch.kernel, tuple(addresses)))

    compiled: list[str] = []

    def compiling(text: str, target: Target) -> tuple[bytes, str]:
        compiled.append(target.cpu)
        return b"", ""

    monkeypatch.setattr("ansorpy.codegen.cuda.device.driver.compile_source", compiling)
    monkeypatch.setattr(CudaDevice, "load", lambda self, cubin: object())
    monkeypatch.setattr(CudaDevice, "launch", launch)
    monkeypatch.setattr(CudaDevice, "download", download)
    assert device.equal(256, 512, 100)
    answer = 1
    assert not device.equal(256, 512, 100)
    assert asked == [("differs", (256, 512, 7))] * 2 and names(runtime).count("malloc") == 1
    assert compiled == ["sm_90"]


def test_differences_and_guards_are_asked_of_the_gpu(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = CudaDevice()
    asked: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    answers = [
        np.array([[256, 9, 0], [512, 8, 1]], np.uint64),
        np.array([10, 5, 3, np.float64(0.5).view(np.uint64)], np.uint64),
    ]

    def download(self: CudaDevice, address: int, into: Any) -> None:
        into[...] = answers[len(asked) - 1]

    def launch(self: CudaDevice, module: object, launch: Launch, given: Sequence[int]) -> None:
        asked.append((launch.kernel, launch.grid, tuple(given)))

    monkeypatch.setattr(
        "ansorpy.codegen.cuda.device.driver.compile_source", lambda text, target: (b"", "")
    )
    monkeypatch.setattr(CudaDevice, "load", lambda self, cubin: object())
    monkeypatch.setattr(CudaDevice, "launch", launch)
    monkeypatch.setattr(CudaDevice, "download", download)
    assert device.filled([(256, 9), (512, 8)], 0xFF) == [True, False]
    dtype, bounds = np.dtype(np.float32), NearBounds(768, 5)
    assert device.difference(256, 512, dtype, 10, bounds) == Difference(0.5, 3)
    assert asked == [
        ("filled", (2, 1, 1), (0xFF, 7)),
        ("difference_float32", (1024, 1, 1), (256, 512, 768, 7)),
    ]


def test_the_times_of_several_works_share_the_events_between_them(runtime: Runtime) -> None:
    device = CudaDevice()
    runtime.said.clear()
    works = [lambda n=n: runtime.said.append(("work", (n,))) for n in range(3)]
    assert device.seconds_each(works) == [7e-3] * 3
    assert [name for name in names(runtime) if name in ("work", "eventRecord")] == [
        "eventRecord", *["work", "eventRecord"] * 3,
    ]  # fmt: skip
    assert names(runtime).count("eventElapsedTime") == 3
    made = names(runtime).count("eventCreate")
    device.seconds_each(works)
    assert names(runtime).count("eventCreate") == made
    assert device.seconds(works[0]) == 7e-3


def test_branches_fork_wait_for_each_other_and_join(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = CudaDevice()
    numbers = iter(range(100, 200))
    for name in ("streamCreateWithFlags", "eventCreateWithFlags"):
        monkeypatch.setattr(runtime, name, lambda flags: next(numbers), raising=False)
    runtime.said.clear()

    def work(name: str) -> Callable[[], None]:
        return lambda: device.follow(lambda stream: runtime.said.append((name, (stream,))))

    orders = [Order(0), Order(1, (0,)), Order(0), Order(0, (1,))]
    device.overlap([work(name) for name in "abcd"], orders)
    side, fork, first, second, join = range(100, 105)
    assert runtime.said == [
        ("eventRecord", (fork, 7)), ("streamWaitEvent", (side, fork)),
        ("a", (7,)), ("eventRecord", (first, 7)),
        ("streamWaitEvent", (side, first)), ("b", (side,)), ("eventRecord", (second, side)),
        ("c", (7,)),
        ("streamWaitEvent", (7, second)), ("d", (7,)),
        ("eventRecord", (join, side)), ("streamWaitEvent", (7, join)),
    ]  # fmt: skip


def test_a_refused_launch_on_a_branch_leaves_the_stream_as_it_was(runtime: Runtime) -> None:
    device = CudaDevice()

    def refused() -> None:
        raise CodegenError("refused")

    with pytest.raises(CodegenError, match="refused"):
        device.overlap([refused], [Order(1)])
    told: list[int] = []
    device.follow(told.append)
    assert told == [7]
