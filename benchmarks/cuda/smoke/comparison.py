"""Check that outputs are compared on the GPU as on the CPU, and how long both take."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np

from ansorpy.measure.check.compare import compare
from ansorpy.measure.gpu.guard import GuardedDeviceArray, intact
from ansorpy.measure.gpu.reference import DeviceReference
from benchmarks.cuda.smoke.machine import SmokeGpu

__all__ = ["compared"]

_TYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int32, np.bool_)
_SHAPES = (((3, 97), None), ((5, 70), (83, 1)), ((257, 129), None))
_ALLOWED = 1e-3
_LARGE = 2048


def compared(gpu: SmokeGpu) -> str:
    """Judge outputs with planted errors of every type; time a large one."""
    rng = np.random.default_rng(5)
    for dtype in map(np.dtype, _TYPES):
        for shape, strides in _SHAPES:
            region = GuardedDeviceArray(gpu.device, shape, dtype, strides)
            want = _drawn(rng, shape, dtype)
            reference = DeviceReference(gpu.device, region, want)
            for planted in (None, 0.0, 1.5, np.nan):
                _judge(region, reference, _planted(rng, want, planted))
            assert intact(gpu.device, [region]) == [True], "a guard was hurt"
            gpu.device.fill(region.address + region.nbytes, 0, 1)
            assert intact(gpu.device, [region]) == [False], "a hurt guard was not found"
    return _timed(gpu, rng)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 0, (shape[0], 1))).astype(dtype)


def _planted(rng: np.random.Generator, want: Any, value: float | None) -> Any:
    """*want* with one element replaced; it becomes another integer, or this part of the largest."""
    got = want.copy()
    at = tuple(rng.integers(extent) for extent in want.shape)
    if value is not None:
        is_integer = want.dtype.kind in "iub"
        got[at] = 1 - int(want[at]) if is_integer else value * float(np.abs(want).max())
    return got


def _judge(region: GuardedDeviceArray, reference: DeviceReference, got: Any) -> None:
    region.write(got)
    verdict = compare("C", got, reference.want, _ALLOWED, by_block=True)
    error = reference.error(_ALLOWED, by_block=True, least=0.0)
    where = f"{got.dtype} {got.shape}, strides {region.strides}"
    want = verdict.error if verdict.ok else None
    assert error == want, f"{where}: {error} on the GPU, {want} on the CPU"


def _timed(gpu: SmokeGpu, rng: np.random.Generator) -> str:
    """Seconds of judging a large array on the GPU, and after a download on the CPU."""
    want = rng.standard_normal((_LARGE, _LARGE), dtype=np.float32)
    region = GuardedDeviceArray(gpu.device, want.shape, want.dtype)
    region.write(want)
    reference = DeviceReference(gpu.device, region, want)
    reference.error(_ALLOWED, by_block=True, least=0.0)  # uploads the limits
    begin = time.perf_counter()
    assert reference.error(_ALLOWED, by_block=True, least=0.0) == 0.0
    on_gpu = time.perf_counter()
    assert compare("C", region.read()[0], want, _ALLOWED, by_block=True).ok
    on_cpu = time.perf_counter()
    return (
        f"{_LARGE} x {_LARGE} float32: {(on_gpu - begin) * 1e3:.2f} ms on the GPU, "
        f"{(on_cpu - on_gpu) * 1e3:.0f} ms on the CPU"
    )
