"""Outputs compared on the GPU are accepted exactly if the CPU accepts them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.codegen.cuda.device.checks import Difference, NearBounds
from ansorpy.measure.check.compare import compare
from ansorpy.measure.gpu.guard import GuardedDeviceArray, intact
from ansorpy.measure.gpu.reference import DeviceReference
from tests.codegen.cuda.device.host_checks import HostChecks
from tests.codegen.cuda.emulator import needs_compiler
from tests.codegen.cuda.simulated import SimulatedDevice

Array = npt.NDArray[Any]

FLOATS = [np.dtype(kind) for kind in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
INTEGERS = [np.dtype(kind) for kind in (np.bool_, np.int8, np.uint16, np.int32, np.int64)]


class HostKernels(SimulatedDevice):
    """A simulated GPU that compares memory with the real kernels."""

    kernels: HostChecks

    def difference(
        self, address: int, wanted: int, dtype: np.dtype[Any], count: int, bounds: NearBounds | None
    ) -> Difference:
        def at(place: int, size: int) -> int:
            return int(self.bytes_at(place, size).ctypes.data)

        size = count * dtype.itemsize
        if bounds is not None:
            bounds = NearBounds(at(bounds.address, 1), bounds.row)
        return self.kernels.difference(at(address, size), at(wanted, size), dtype, count, bounds)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> HostChecks:
    return HostChecks(tmp_path_factory.mktemp("checks"))


@pytest.fixture(params=["numpy", pytest.param("kernels", marks=needs_compiler)])
def device(request: pytest.FixtureRequest) -> SimulatedDevice:
    if request.param == "numpy":
        return SimulatedDevice()
    made = HostKernels()
    made.kernels = request.getfixturevalue("kernels")
    return made


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
    ((1,), None), ((7,), None), ((3, 97), None), ((5, 2, 64), None), ((4, 70), (83, 1)),
    ((3, 5, 17), (120, 17, 1)), ((2, 67), (1, 2)), ((), None),
]  # fmt: skip


def errors(rng: np.random.Generator, want: Array) -> Array:
    """*want* with rounding errors of some size, and sometimes something wrong."""
    got = want.astype(np.float64)
    scale = 10.0 ** rng.uniform(-9, -1)
    with np.errstate(invalid="ignore", over="ignore"):
        got = got + scale * rng.standard_normal(want.shape) * np.abs(got)
        found: Array = got.astype(want.dtype)
    flat = found.reshape(-1)
    for _ in range(rng.integers(3) if flat.size else 0):
        at = rng.integers(flat.size)
        flat[at] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, float(flat[at]) * 1.5])
    return found


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Normal numbers in rows of all magnitudes, sometimes with NaNs and infinities."""
    rows = 10.0 ** rng.uniform(-6, 0, (shape[0], *[1] * (len(shape) - 1)) if shape else ())
    want: Array = np.asarray(rng.standard_normal(shape) * rows).astype(dtype)
    flat = want.reshape(-1)
    if rng.random() < 0.3:
        flat[rng.integers(flat.size)] = rng.choice([np.nan, np.inf, -np.inf])
    if rng.random() < 0.1:
        flat[:] = 0
    if rng.random() < 0.2:
        # A NaN whose bits are all ones, like a gap between elements.
        flat.view(np.uint8)[: dtype.itemsize] = 0xFF
    return want


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_are_judged_as_on_the_cpu(dtype: np.dtype[Any], device: SimulatedDevice) -> None:
    rng = np.random.default_rng(7)
    verdicts: list[bool] = []
    for shape, strides in SHAPES * 6:
        region = GuardedDeviceArray(device, shape, dtype, strides)
        want = drawn(rng, shape, dtype)
        reference = DeviceReference(device, region, want)
        for _ in range(4):
            got = want.copy() if rng.random() < 0.2 else errors(rng, want)
            allowed, least = 10.0 ** rng.uniform(-7, -1), rng.choice([0.0, 1e-4, 1e-1])
            by_block = bool(rng.random() < 0.7)
            region.poison()
            region.write(got)
            verdict = compare("C", got, want, allowed, by_block=by_block, least=least)
            error = reference.error(allowed, by_block=by_block, least=least)
            assert error == (verdict.error if verdict.ok else None), (verdict, shape, strides)
            verdicts.append(verdict.ok)
    assert 0.2 < np.mean(verdicts) < 0.8


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_must_be_equal(dtype: np.dtype[Any], device: SimulatedDevice) -> None:
    rng = np.random.default_rng(8)
    for shape, strides in SHAPES:
        region = GuardedDeviceArray(device, shape, dtype, strides)
        want = rng.integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)
        reference = DeviceReference(device, region, np.asarray(want))
        region.write(want)
        assert reference.error(0.0, by_block=True, least=0.0) == 0.0
        got = np.array(want)
        flat = got.reshape(-1)
        flat[rng.integers(flat.size)] ^= dtype.type(1)
        region.write(got)
        assert not compare("C", got, want, 0.0).ok
        assert reference.error(0.0, by_block=True, least=0.0) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_what_was_written_between_elements_is_found(
    dtype: Any, value: float, device: SimulatedDevice
) -> None:
    if np.isnan(value) and dtype is np.int32:
        value = 1.0
    region = GuardedDeviceArray(device, (3, 70), dtype, (73, 1))
    want = np.ones((3, 70), dtype)
    reference = DeviceReference(device, region, want)
    region.write(want)
    assert reference.error(1e-3, by_block=True, least=0.0) == 0.0
    at = region.address + 71 * region.dtype.itemsize
    device.upload(at, np.array([value], dtype))
    assert reference.error(1e-3, by_block=True, least=0.0) is None
    assert intact(device, [region]) == [True] and not region.read()[1]


def test_what_was_never_written_is_not_accepted(device: SimulatedDevice) -> None:
    for dtype in (np.float32, np.int32, np.bool_):
        region = GuardedDeviceArray(device, (5, 13), dtype)
        reference = DeviceReference(device, region, np.ones((5, 13), dtype))
        assert reference.error(0.5, by_block=False, least=0.0) is None


def test_each_side_of_each_region_is_guarded() -> None:
    device = SimulatedDevice()
    regions = [GuardedDeviceArray(device, (n,), np.uint8) for n in (1, 15, 16, 33)]
    assert intact(device, regions) == [True] * 4 and intact(device, []) == []
    device.fill(regions[1].address - 1, 0, 1)
    device.fill(regions[3].address + 33, 0, 1)
    assert intact(device, regions) == [True, False, True, False]
