"""What the driver makes of CUDA's errors, with a runtime that has no GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ansorpy.codegen.cuda.device import DeviceLost
from ansorpy.codegen.cuda.driver import CudaDevice
from ansorpy.errors import CodegenError


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

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> int:
            self.said.append((name, given))
            if name in self.refused:
                raise RuntimeFailure(f"{name} fails")
            return 7

        return call


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    runtime = Runtime()
    driver = SimpleNamespace(CUDADriverError=RuntimeFailure)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(runtime=runtime, driver=driver))
    yield runtime


def names(runtime: Runtime) -> list[str]:
    return [name for name, _ in runtime.said]


def test_an_error_that_stays_is_a_lost_device_wherever_it_shows(runtime: Runtime) -> None:
    device = CudaDevice()
    runtime.refused = {"malloc"}
    with pytest.raises(CodegenError, match="the GPU refuses: malloc fails"):
        device.allocate(8)
    runtime.refused = {"setDevice", "deviceSynchronize"}
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
    with pytest.raises(CodegenError, match="the GPU refuses: memsetAsync fails"):
        device.capture(lambda: device.fill(8, 0, 4))
    assert names(runtime)[-1] == "streamEndCapture" and "deviceSynchronize" not in names(runtime)
    runtime.refused = set()
    assert device.capture(lambda: device.fill(8, 0, 4)) == 7
