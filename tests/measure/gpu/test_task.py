"""One task on a (simulated) GPU: what is uploaded, checked, timed and given back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.api.sized.program import require_equal
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.errors import CodegenError, DeviceLost, ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.devices import devices_of
from ansorpy.measure.gpu.guard import GuardedDeviceArray
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.run.timing import TimingPolicy, time_calls
from ansorpy.schedule.state import State
from tests.codegen.cuda.simulated import GPU, SimulatedDevice, simulated_code
from tests.measure.gpu.simulated import N, doubling, gpu_task, scheduled, simulated_built


def test_a_right_candidate_gives_the_result_and_its_seconds() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(), 3, device)
    with task.load(simulated_built(scheduled(task.dag))) as candidate:
        assert candidate.check() == pytest.approx(0.002, rel=0.01)
        values = task.values()
        assert np.array_equal(task.results()[0], values["A"] * np.float32(2) + values["B"])
    assert device.modules == 0


def test_code_for_all_sizes_is_checked_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    device, whole = SimulatedDevice(), doubling(dim("n", 1, 500))
    monkeypatch.setattr("ansorpy.measure.gpu.devices.device_for", lambda target: device)
    built = simulated_built(scheduled(whole))
    for n in (1, 37, 500):
        sizes = dict.fromkeys(whole.dims, n)
        require_equal(
            built.at(sizes), simulated_built(scheduled(doubling(n))), gpu_task(doubling(n)), 3
        )
        task = devices_of(GPU).open_task(gpu_task(doubling(n)), 3)
        with task.load(built.at(sizes)) as candidate:
            candidate.check()
            candidate.prepare(0)
            assert candidate.burst(candidate.unit) > 0
        values = task.values()
        assert np.array_equal(task.results()[0], values["A"] * np.float32(2) + values["B"])
    with (
        GpuTask(doubling(5), 3, device).load(built.at(dict.fromkeys(whole.dims, 6))) as candidate,
        pytest.raises(CodegenError, match="parameter A does not fit the task"),
    ):
        candidate.check()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("writes beyond", "wrote outside its outputs"),
        ("writes before", "wrote outside its outputs"),
        ("writes its input", "wrote to its input A"),
        ("refused", "too many resources"),
    ],
)
def test_what_goes_wrong_on_the_gpu_is_an_error_with_its_reason(fault: str, reason: str) -> None:
    task = GpuTask(doubling(), 3, SimulatedDevice())
    with (
        task.load(simulated_built(scheduled(task.dag), fault=fault)) as candidate,
        pytest.raises(CodegenError, match=reason),
    ):
        candidate.check()


def test_a_lost_context_is_an_error_of_its_own() -> None:
    task = GpuTask(doubling(), 3, SimulatedDevice())
    built = simulated_built(scheduled(task.dag), fault="illegal access")
    with pytest.raises(DeviceLost, match="illegal memory access"), task.load(built) as candidate:
        candidate.check()


def test_constants_take_turns_and_every_copy_is_used() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(constant=True), 3, device)
    with task.load(simulated_built(scheduled(task.dag), seconds=2e-5)) as candidate:
        candidate.check()
        before = device.calls.count("copy")
        candidate.prepare(4 * N * 4)
        assert device.calls.count("copy") - before == 5
        assert candidate.unit % 5 == 0 and device.graphs == 1
        before = device.calls.count("replay")
        device.launched.clear()
        assert candidate.burst(3 * candidate.unit) == pytest.approx(3 * candidate.unit * 2e-5)
        assert device.calls.count("replay") - before == 1 + 3  # one is not timed
        assert len({constant for _, constant, _ in device.launched}) == 5
    assert device.graphs == device.modules == 0


def test_only_a_gpu_that_has_rested_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    device, now = SimulatedDevice(), 100.0
    monkeypatch.setattr("ansorpy.measure.gpu.task.time.monotonic", lambda: now)
    task = GpuTask(doubling(), 3, device)

    def fills() -> int:
        before = device.calls.count("fill")
        with task.load(simulated_built(scheduled(task.dag))):
            return device.calls.count("fill") - before

    assert fills() > 100  # work of some ten milliseconds
    now += 0.5
    assert fills() == 1  # of its workspace
    now += 10
    assert fills() > 100


def test_without_cold_constants_there_is_one_copy() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(constant=True), 3, device)
    with task.load(simulated_built(scheduled(task.dag))) as candidate:
        candidate.check()
        before = device.calls.count("copy")
        candidate.prepare(0)
        assert candidate.unit == 1 and candidate.burst(2) == pytest.approx(0.004)
    assert device.calls.count("copy") == before


@pytest.mark.parametrize("seconds", [2e-6, 4e-5, 3e-3])
def test_no_launch_is_part_of_the_time(seconds: float) -> None:
    task = GpuTask(doubling(), 3, SimulatedDevice())
    with task.load(simulated_built(scheduled(task.dag), seconds=seconds)) as candidate:
        candidate.check()
        candidate.prepare(0)
        assert candidate.burst(candidate.unit) == pytest.approx(candidate.unit * seconds)
        # As quick as the best: it is not taken for a slow one.
        policy = TimingPolicy(warm_s=0, min_samples=1, max_samples=1)
        timing = time_calls(candidate.burst, policy, seconds, unit=candidate.unit)
        assert not timing.is_slow
        assert timing.seconds == pytest.approx([seconds])


def test_a_sample_is_not_drawn_out_by_copies() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(constant=True), 3, device)
    with task.load(simulated_built(scheduled(task.dag), seconds=4.9e-4)) as candidate:
        candidate.check()
        candidate.prepare(1 << 40)
        device.launched.clear()
        candidate.burst(candidate.unit)
        # 5 ms of calls, though far more copies would be needed for so many bytes between two.
        assert candidate.unit == len({constant for _, constant, _ in device.launched}) == 10


def test_outputs_stay_on_the_gpu_until_one_is_wrong() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(), 3, device)
    values = task.values()
    want = values["A"] * np.float32(2) + values["B"]

    def error(built: Built) -> float | None:
        with task.load(built) as candidate:
            candidate.check()
            return task.accepted_error(0, want, 1e-6, by_block=True, least=0.0)

    device.calls.clear()
    assert error(simulated_built(scheduled(task.dag))) == 0.0
    assert "download" not in device.calls
    uploads = device.calls.count("upload")
    assert uploads == 1  # the reference
    assert error(simulated_built(scheduled(task.dag), fault="wrong")) is None
    assert device.calls.count("upload") == uploads and "download" not in device.calls
    assert task.results()[0][0] == want[0] + 1 and device.calls.count("download") == 1


def test_what_a_failed_candidate_hurt_is_uploaded_again() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(), 3, device)
    want = task.values()["A"] * np.float32(2) + task.values()["B"]
    built = simulated_built(scheduled(task.dag))
    with task.load(built) as candidate:
        candidate.check()
        assert task.accepted_error(0, want, 1e-6, by_block=True, least=0.0) == 0.0
    for address, memory in device.live.items():
        device.fill(address, 0x11, len(memory))
    assert task.recover()
    with task.load(built) as candidate:
        candidate.check()
        assert task.accepted_error(0, want, 1e-6, by_block=True, least=0.0) == 0.0


def test_memory_goes_back() -> None:
    device = SimulatedDevice()
    task = GpuTask(doubling(constant=True), 3, device)
    kept = len(device.live)
    with task.load(simulated_built(scheduled(task.dag))) as candidate:
        candidate.check()
        candidate.prepare(5 * N * 4)
        assert len(device.live) > kept
    del candidate
    gc.collect()
    assert len(device.live) == kept
    del task
    gc.collect()
    assert not device.live


def test_parts_of_larger_tensors_are_checked_around_and_between() -> None:
    a = placeholder((6, 10), name="A")
    c = compute((6, 10), lambda i, j: a[i, j] + 1.0, name="C")
    dag = ComputeDAG([c], [a], {"A": (16, 1), "C": (12, 1)})
    state = State.initial(dag).bind("C", "i", "blockIdx.x").bind("C", "j", "threadIdx.x")
    device = SimulatedDevice()
    task = GpuTask(dag, 0, device)
    with task.load(simulated_built(state)) as candidate:
        candidate.check()
        want = task.values()["A"] + np.float32(1)
        assert task.accepted_error(0, want, 1e-6, by_block=True, least=0.0) == 0.0
        device.fill(task.outputs[0].address + 10 * 4, 0, 4)
        assert task.accepted_error(0, want, 1e-6, by_block=True, least=0.0) is None
        with pytest.raises(CodegenError, match="wrote between the elements of its outputs"):
            task.results()
        device.fill(task.outputs[0].address + 10 * 4, 0xFF, 4)
        assert np.array_equal(task.results()[0], want)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_what_was_never_written_is_told_from_results(dtype: Any) -> None:
    region = GuardedDeviceArray(SimulatedDevice(), (3, 5), dtype)
    array, intact = region.read()
    assert intact
    assert np.isnan(array).all() if dtype is np.float32 else (array.view(np.uint8) == 0xA5).all()
    values: npt.NDArray[Any] = np.arange(15).reshape(3, 5).astype(dtype)
    region.write(values)
    assert np.array_equal(region.read()[0], values)


def test_a_gap_that_was_written_is_found() -> None:
    device = SimulatedDevice()
    region = GuardedDeviceArray(device, (3, 4), np.float32, (6, 1))
    region.write(np.ones((3, 4), np.float32))
    assert region.read()[1]
    device.fill(region.address + 4 * 4, 0, 4)
    assert not region.read()[1]


def test_parameters_that_do_not_fit_are_refused() -> None:
    task = GpuTask(doubling(), 3, SimulatedDevice())
    built = simulated_built(scheduled(task.dag))
    wrong = tuple(
        ParamSpec(name=s.name, shape=(N + 1,), dtype=s.dtype, role=s.role) for s in built.run_params
    )
    with (
        task.load(Built(built.run, wrong)) as candidate,
        pytest.raises(CodegenError, match="does not fit the task"),
    ):
        candidate.check()


def test_a_program_for_a_gpu_is_taken_apart_as_it_was_put_together() -> None:
    state = scheduled(doubling())
    code = simulated_code(state, "name")
    plan, cubin = PACKING.unpack(code.code)
    assert code.symbol == "name" and [launch.kernel for launch in plan.launches] == ["name"]
    assert plan.launches[0].grid == (60, 1, 1) and plan.launches[0].block == (32, 1, 1)
    assert simulated_code(state, "name").digest == code.digest
    assert cubin.startswith(b'{"definition"')
    for junk in (b"", b"\x7fELF", code.code[:30], code.code[:20] + b"{}" + code.code[22:]):
        with pytest.raises(ForeignFile, match="not a GPU program"):
            PACKING.unpack(junk)
