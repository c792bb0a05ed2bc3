"""Compiled programs on a (simulated) GPU: what is copied, launched, captured and replayed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ansorpy.codegen.cuda.passes.run_on_host import for_host
from ansorpy.codegen.llvm.objects.build import build
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.graph.network import Network
from ansorpy.ir.analysis.overwrite import overwritable
from ansorpy.ir.builders import maximum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim, dims_of
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.cuda.simulated import (
    GPU,
    STREAM,
    SimulatedArray,
    SimulatedDevice,
    simulated_code,
)
from tests.runtime import programs, sized
from tests.runtime.programs import K, M, N

Layers = list[tuple[programs.Floats, programs.Floats]]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    return attached(SimulatedDevice(), monkeypatch)


def attached(device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    """*device* as this machine's only GPU."""
    monkeypatch.setattr(Target, "gpus", lambda self: (0,) if self.backend == "cuda" else ())
    monkeypatch.setattr("ansorpy.runtime.gpu.runtime.device_for", lambda target: device)
    return device


def bound(state: State) -> State:
    """Rows of every stage in blocks, those on constants alone as well."""
    for stage in list(state.stages):
        if not stage.is_placeholder:
            state = state.bind(stage.name, stage.iters[0], "blockIdx.x")
    return state


def panels(state: State) -> State:
    """W re-laid in panels at bind time."""
    state, _ = state.split("P", "j", (8,))
    return bound(state.reorder("P", ["j.0", "i", "k", "j.1"]).pack("P", "W"))


def gpu_task(dag: ComputeDAG, symbol: str, schedule: Callable[[State], State]) -> CompiledTask:
    state = schedule(State.initial(dag))
    lowered = lower(state, symbol)
    specs = tuple(ParamSpec.of(param) for param in lowered.run.params)
    built = Built(
        simulated_code(state, symbol), specs,
        dims=lowered.run.dims, overwrites=overwritable(lowered.run),
    )  # fmt: skip
    if lowered.bind is not None:
        bind = build(for_host(lowered.bind), Target.host(), symbol=f"{symbol}_bind")
        made = tuple(ParamSpec.of(param) for param in lowered.bind.params)
        built = replace(built, bind=bind, bind_params=made)
    return CompiledTask.of(dag, built, program=lowered.run)


def model(rng: np.random.Generator) -> tuple[CompiledModel, Layers]:
    layers = [programs.constants(rng), programs.constants(rng)]
    net = programs.network(layers)
    dense_key, tail_key = (w.key for w in net.workloads())
    tasks = {
        dense_key: gpu_task(net.calls[0].dag, "dense_task", panels),
        tail_key: gpu_task(programs.tail(), "tail_task", bound),
    }
    return CompiledModel.of(net, tasks, target=GPU, threads=1, name="demo"), layers


def rows_of_any_number(low: int, high: int) -> ComputeDAG:
    """``y[i, j] = max(2 x[i, j] + x[i, 0], 0)`` for *low* to *high* rows."""
    n = dim("n", low, high)
    x = placeholder((n, 8), name="x")
    double = compute((n, 8), lambda i, j: x[i, j] * 2.0 + x[i, 0], name="double")
    return ComputeDAG.of([x, compute((n, 8), lambda i, j: maximum(double[i, j], 0.0), name="y")])


def in_two_kernels(state: State) -> State:
    """Four rows of both stages in a block."""
    for name in ("double", "y"):
        state, (block, row) = state.split(name, "i", (4,))
        state = state.bind(name, block, "blockIdx.x").bind(name, row, "threadIdx.y")
        state = state.bind(name, "j", "threadIdx.x")
    return state


def kernel_of_rows(low: int, high: int) -> Kernel:
    task = gpu_task(rows_of_any_number(low, high), "rows_task", in_two_kernels)
    return Kernel(task, target=GPU, threads=1)


def test_a_kernel_is_launched_for_the_rows_that_it_is_given(rng, device):
    kernel = kernel_of_rows(0, 50)
    expected = {1: ["launch"] * 2, 7: ["launch"] * 2, 0: [], 50: ["launch"] * 2}
    for rows, launches in expected.items():
        device.calls.clear()
        x = rng.standard_normal((rows, 8), dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), np.maximum(x * 2 + x[:, :1], 0))
        assert [c.split()[0] for c in device.calls if c.startswith("launch")] == launches
        assert "capture" not in device.calls
    for rows in (7, 1, 7):  # each size has a graph of its own
        device.calls.clear()
        x = rng.standard_normal((rows, 8), dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), np.maximum(x * 2 + x[:, :1], 0))
        assert "replay" in device.calls
    assert device.graphs == 2


def test_sizes_are_read_off_arrays_of_the_gpu(rng, device):
    kernel = kernel_of_rows(2, 50)
    x = SimulatedArray(device, rng.standard_normal((9, 8), dtype=np.float32))
    y = SimulatedArray(device, np.zeros((9, 8), np.float32))
    kernel.prepare(x, out=y)()
    np.testing.assert_array_equal(y.numpy(), np.maximum(x.values * 2 + x.values[:, :1], 0))
    with pytest.raises(UsageError, match="n is from 2 to 50"):
        kernel(SimulatedArray(device, np.zeros((51, 8), np.float32)))
    with pytest.raises(UsageError, match="'y' takes 9x8 of float32, got 8x8"):
        kernel(x, out=SimulatedArray(device, np.zeros((8, 8), np.float32)))


def sized_model(rng: np.random.Generator) -> tuple[CompiledModel, sized.Sized, Network]:
    """A random network with dimensions, whose arena is laid out for the largest sizes."""
    made, network = sized.random_network(rng, calls=6)
    tasks = {
        w.key: gpu_task(w.dag, f"sized{n}_task", bound) for n, w in enumerate(network.workloads())
    }
    return CompiledModel.of(network, tasks, target=GPU, threads=1, name="sized"), made, network


def test_a_model_runs_at_the_sizes_of_its_inputs(rng, device):
    model, made, network = sized_model(rng)
    names = [port.name for port in model.get_outputs()]
    for _ in range(4):
        feeds = sized.feeds(network, sized.drawn_sizes(rng), rng)
        results = model.run(None, feeds)
        for got, want in zip(results, made.results(feeds, names), strict=True):
            np.testing.assert_array_equal(got, want)


def given(rng: np.random.Generator) -> programs.Floats:
    return rng.standard_normal((N, K), dtype=np.float32)


def assert_right(got: list[Any], layers: Layers, x: programs.Floats) -> None:
    for mine, want in zip(got, programs.expected(layers, x), strict=True):
        np.testing.assert_allclose(mine, want, rtol=1e-5, atol=1e-5)


def test_runs_are_launched_then_captured_then_replayed(rng, device):
    made, layers = model(rng)
    loaded = list(device.calls)
    assert loaded.count("upload") == 1 and loaded.count("load") == 2  # constants, once
    kernels = []
    for run in range(4):
        device.calls.clear()
        x = given(rng)
        assert_right(made.run(None, {"x": x}), layers, x)
        kernels.append([call for call in device.calls if call not in ("upload", "download")])
        assert device.calls.count("upload") == 1 and device.calls.count("download") == 3, run
    launched = [call.split("_task")[0] for call in kernels[0][:-1]]
    assert launched == ["launch dense"] * 2 * 2 + ["launch tail"] * 2
    # The two dense layers may overlap.
    assert kernels[1] == ["capture", "overlap", "replay", "synchronise"]
    assert kernels[2] == kernels[3] == ["replay", "synchronise"]


def test_arrays_of_the_gpu_are_used_where_they_are(rng, device):
    made, layers = model(rng)
    x = given(rng)
    on_gpu = SimulatedArray(device, x, stream=7)
    outputs = [SimulatedArray(device, np.zeros(p.shape, np.float32)) for p in made.get_outputs()]
    for _ in range(3):
        device.calls.clear()
        results = made.run(None, {"x": on_gpu}, outputs)
        assert all(a is b for a, b in zip(results, outputs, strict=True))
        assert_right([array.numpy() for array in outputs], layers, x)
        assert device.calls[0] == "wait for 7"
        assert not {"upload", "download", "copy"} & set(device.calls)


def test_arrays_that_name_no_stream_wait_for_the_default_one(rng, device, monkeypatch):
    made, layers = model(rng)
    array = SimulatedArray(device, given(rng))
    shown = dict(array.__cuda_array_interface__)
    del shown["stream"]
    monkeypatch.setattr(SimulatedArray, "__cuda_array_interface__", shown)
    assert_right(made.run(None, {"x": array}), layers, array.values)
    assert "wait for 1" in device.calls


class Produced(SimulatedArray):
    """An array as torch shows it: it names no stream, and DLPack tells it who will read it.

    Its values are there once they have been asked for, as when a stream of torch's own makes them.
    """

    shows_its_address = True

    def produce(self, values: programs.Floats) -> None:
        self.values = values
        self.device.bytes_at(self.address, self.values.nbytes)[:] = 0

    def __getattribute__(self, name: str) -> Any:
        if name != "__cuda_array_interface__":
            return super().__getattribute__(name)
        if not self.shows_its_address:
            raise AttributeError(name)
        return {k: v for k, v in super().__getattribute__(name).items() if k != "stream"}

    def __dlpack__(self, *, stream: int) -> object:
        self.device.calls.append(f"ready for {stream}")
        self.device.bytes_at(self.address, self.values.nbytes)[:] = self.values.view(
            np.uint8
        ).ravel()
        return object()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.mark.parametrize("shows_its_address", [True, False])
def test_producers_make_their_arrays_ready_for_each_run(
    rng, device, monkeypatch, shows_its_address
):
    def from_dlpack(value: Produced) -> SimulatedArray:
        made = SimulatedArray(device, value.values, stream=9)
        made.address = value.address
        return made

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(from_dlpack=from_dlpack))
    monkeypatch.setattr(Produced, "shows_its_address", shows_its_address)
    made, layers = model(rng)
    array = Produced(device, given(rng))
    outputs = [np.zeros(p.shape, np.float32) for p in made.get_outputs()]
    array.produce(given(rng))
    assert_right(made.run(None, {"x": array}), layers, array.values)
    again = made.prepare({"x": array}, outputs)
    for _ in range(3):
        array.produce(given(rng))
        device.calls.clear()
        again()
        assert device.calls[:2] == ["follow", f"ready for {STREAM}"]
        assert not any(call.startswith("wait for") for call in device.calls)
        assert_right(outputs, layers, array.values)


def test_arrays_on_another_gpu_are_refused(rng, device, monkeypatch):
    monkeypatch.setattr(Produced, "__dlpack_device__", lambda self: (2, 1))
    made, layers = model(rng)
    array = Produced(device, given(rng))
    outputs = [Produced(device, np.zeros(p.shape, np.float32)) for p in made.get_outputs()]
    for inputs, results, said in ((array, None, "input 'x'"), (array.values, outputs, "output ")):
        with pytest.raises(UsageError, match=f"{said}.* is on GPU 1, and the program on GPU 0"):
            made.run(None, {"x": inputs}, results)
    monkeypatch.setattr(device, "number", 1)
    array.produce(array.values)
    assert_right(made.run(None, {"x": array}), layers, array.values)


def test_an_array_that_its_producer_does_not_hand_over_is_refused(rng, device, monkeypatch):
    def refuse(self: Produced, *, stream: int) -> object:
        raise BufferError("it is on another device")

    monkeypatch.setattr(Produced, "__dlpack__", refuse)
    made, _ = model(rng)
    with pytest.raises(UsageError, match="'x' cannot be used: it is on another device"):
        made.run(None, {"x": Produced(device, given(rng))})


def test_a_prepared_run_tells_its_seconds_on_the_gpu(rng, device):
    made, layers = model(rng)
    x = given(rng)
    outputs = [np.zeros(p.shape, np.float32) for p in made.get_outputs()]
    run: Any = made.prepare({"x": x}, outputs)
    run()
    assert_right(outputs, layers, x)
    for number in (5, 33):  # a part of a graph; two graphs and one run
        assert run.seconds(number) == pytest.approx(number * 6 * 0.002)  # six kernels
    assert device.graphs == 1  # of calls; those that were timed are gone


def test_arrays_at_odd_addresses_are_copied(rng, device):
    made, layers = model(rng)
    x = given(rng)
    on_gpu = SimulatedArray(device, x, offset=4)
    first = SimulatedArray(device, np.zeros((N, M), np.float32), offset=4)
    rows, one = (np.zeros(p.shape, np.float32) for p in made.get_outputs()[1:])
    made.run(None, {"x": on_gpu}, [first, rows, one])
    assert_right([first.numpy(), rows, one], layers, x)
    assert device.calls.count("copy") == 2


class Offered:
    """An array that only speaks DLPack."""

    def __init__(self, array: programs.Floats) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_what_speaks_dlpack_is_taken(rng, device):
    made, layers = model(rng)
    x = given(rng)
    assert_right(made.run(None, {"x": Offered(x)}), layers, x)


def test_inputs_of_the_host_need_not_be_contiguous(rng, device):
    made, layers = model(rng)
    x = given(rng)
    assert_right(made.run(None, {"x": np.asfortranarray(x)}), layers, x)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"values": np.zeros((N, K + 1), np.float32)}, "takes 5x12 of float32, got 5x13"),
        ({"values": np.zeros((N, K), np.float64)}, "got 5x12 of float64"),
        ({"strides": (4, 4 * N)}, "not contiguous"),
    ],
)
def test_arrays_of_the_gpu_that_do_not_fit_are_refused(rng, device, change, reason):
    made, _ = model(rng)
    array = SimulatedArray(device, **{"values": given(rng), **change})
    with pytest.raises(UsageError, match=reason):
        made.run(None, {"x": array})


def test_outputs_that_may_not_be_written_or_overlap_are_refused(rng, device):
    made, layers = model(rng)
    names = [port.name for port in made.get_outputs()]
    fixed = SimulatedArray(device, np.zeros((N, M), np.float32), read_only=True)
    with pytest.raises(UsageError, match="read-only"):
        made.run(names[:1], {"x": given(rng)}, [fixed])
    both = SimulatedArray(device, np.zeros((N, M), np.float32))
    with pytest.raises(UsageError, match="shares memory"):
        made.run([names[0], names[2]], {"x": given(rng)}, [both, both])
    on_host = np.zeros((N + 1, M), np.float32)
    with pytest.raises(UsageError, match="'plus one' shares memory"):
        made.run([names[0], names[2]], {"x": given(rng)}, [on_host[:N], on_host[1:]])
    x = given(rng)
    want = programs.expected(layers, x)[1]
    [sums] = made.run(names[1:2], {"x": x}, [x.reshape(-1)[:N]])  # x is copied to the GPU first
    np.testing.assert_allclose(sums, want, rtol=1e-5, atol=1e-5)


def test_graphs_of_the_addresses_used_last_are_kept(rng, device):
    made, layers = model(rng)
    arrays = [SimulatedArray(device, given(rng)) for _ in range(17)]
    for array in [*arrays, *arrays[-2:], *arrays[-2:]]:
        assert_right(made.run(None, {"x": array}), layers, array.values)
    assert device.graphs == 2
    for array in [*arrays, *arrays]:
        made.run(None, {"x": array})
    assert device.graphs <= 16


def test_memory_goes_back_with_the_model(rng, device):
    made, _ = model(rng)
    for _ in range(2):
        made.run(None, {"x": given(rng)})
    assert device.live and device.modules == 2 and device.graphs == 1
    del made
    gc.collect()
    assert not device.live and device.modules == device.graphs == 0


def test_several_threads_may_call_a_model(rng, device):
    made, layers = model(rng)
    inputs = [given(rng) for _ in range(12)]
    with ThreadPoolExecutor(4) as threads:
        for x, got in zip(
            inputs, threads.map(lambda x: made.run(None, {"x": x}), inputs), strict=True
        ):
            assert_right(got, layers, x)


@dataclass
class Shared(SimulatedDevice):
    """Within the next capture another thread begins ``meanwhile`` and gets some time for it."""

    meanwhile: Callable[[], None] | None = None
    ends: list[Future[None]] = field(default_factory=list)

    def capture(self, work: Callable[[], None]) -> object:
        def beside() -> None:
            work()
            if self.meanwhile is not None:
                begun, self.meanwhile = self.meanwhile, None
                threads = ThreadPoolExecutor(1)
                self.ends.append(threads.submit(begun))
                wait(self.ends, timeout=0.2)
                threads.shutdown(wait=False)

        return super().capture(beside)


@pytest.mark.parametrize("first", ["runs", "is timed"])
@pytest.mark.parametrize("other", ["runs", "is loaded and runs"])
def test_models_on_one_gpu_take_turns(rng, monkeypatch, first, other):
    device = Shared()
    attached(device, monkeypatch)
    made, layers = model(rng)
    x, outputs = given(rng), [np.zeros(p.shape, np.float32) for p in made.get_outputs()]
    prepared: Any = made.prepare({"x": x}, outputs)
    for _ in range(1 if first == "runs" else 2):  # what is timed is captured again
        prepared()
    assert_right(outputs, layers, x)
    loaded = model(rng) if other == "runs" else None

    def beside() -> None:
        another, its_layers = loaded or model(np.random.default_rng(3))
        assert_right(another.run(None, {"x": x}), its_layers, x)

    device.meanwhile = beside
    for output in outputs:
        output[...] = 0
    if first == "runs":
        prepared()
    else:
        assert prepared.seconds(3) == pytest.approx(3 * 6 * 0.002)  # six kernels
    assert_right(outputs, layers, x)
    [end] = device.ends
    end.result(timeout=60)


def test_a_kernel_binds_its_constants_and_is_prepared_once(rng, device):
    w, b = programs.constants(rng)
    kernel = Kernel(gpu_task(programs.dense(), "dense", panels), target=GPU, threads=1)
    kernel.bind(W=w, B=b)
    x, y = given(rng), np.zeros((N, M), np.float32)
    want = programs.expected_dense(x, w, b)
    np.testing.assert_allclose(kernel(x), want, rtol=1e-5, atol=1e-5)
    again = kernel.prepare(x, out=y)
    for _ in range(3):
        y[...] = 0
        again()
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    on_gpu = SimulatedArray(device, y * 0)
    assert kernel(SimulatedArray(device, x), out=on_gpu) is on_gpu
    np.testing.assert_allclose(on_gpu.numpy(), want, rtol=1e-5, atol=1e-5)


def test_calls_are_timed_between_events_while_the_gpu_has_work(rng, device):
    made, _ = model(rng)
    launches = made.kernels({})
    assert made.get_inputs()[0].name == "x" and min(launches) >= 1
    device.calls.clear()
    times = made.profile({"x": given(rng)}, runs=3)
    # Each kernel takes 2 ms, and none waits to be launched.
    assert [seconds for _, seconds in times] == pytest.approx([2e-3 * n for n in launches])
    assert device.calls.count("seconds each") == 4
    last = len(device.calls) - device.calls[::-1].index("seconds each")
    assert device.calls[last - 2] == "replay"
    assert device.calls[last : last + sum(launches)] == [
        c for c in device.calls[last:] if c.startswith("launch")
    ]


def test_the_kernels_of_a_call_are_counted_at_its_sizes(rng, device):
    made, _, network = sized_model(rng)
    sizes = sized.drawn_sizes(rng)
    device.calls.clear()
    made.run(None, sized.feeds(network, sizes, rng))
    launched = [call for call in device.calls if call.startswith("launch")]
    dims = dims_of(extent for port in made.get_inputs() for extent in port.shape)
    counts = made.kernels({dim: sizes[dim.name] for dim in dims})
    assert sum(counts) == len(launched) and len(counts) == len(network.calls)


def test_without_a_gpu_a_kernel_can_be_made_but_not_called(rng):
    if GPU.gpus():
        pytest.skip("this machine has a GPU")
    kernel = Kernel(gpu_task(programs.tail(), "tail", bound), target=GPU, threads=1)
    with pytest.raises(MissingDependency, match="no GPU that runs it"):
        kernel(np.zeros((N, M), np.float32))
