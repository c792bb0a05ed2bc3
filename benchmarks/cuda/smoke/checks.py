"""The checks, in running order: the driver, kinds of code, measuring, calling."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import ansorpy
from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.protocol import Order, launch_all, repeat
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.errors import CodegenError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.kernel import Kernel
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from benchmarks.cuda.definitions import product, row_sums
from benchmarks.cuda.smoke.comparison import compared
from benchmarks.cuda.smoke.machine import (
    N,
    Skipped,
    SmokeGpu,
    blocked,
    doubling,
    drawn,
    expected,
    loaded,
)
from benchmarks.cuda.smoke.planting import PlantingBuilder, planted_state

__all__ = ["CHECKS", "small_network"]


def _memory(gpu: SmokeGpu) -> str:
    """allocate, upload, fill, copy, equal, download, release."""
    device, given = gpu.device, np.arange(1024, dtype=np.float32)
    one, other = device.allocate(given.nbytes), device.allocate(given.nbytes)
    device.upload(one, given)
    device.fill(other, 0, given.nbytes)
    assert not device.equal(one, other, given.nbytes), "different memory compares as equal"
    device.copy(other, one, given.nbytes)
    assert device.equal(one, other, given.nbytes), "a copy compares as different"
    back = aligned_empty(given.shape, given.dtype)
    device.download(other, back)
    device.release(one)
    device.release(other)
    assert np.array_equal(back, given), "what comes back is not what was sent"
    return f"{given.nbytes} bytes"


class _Doubling:
    """The operands of a small program on the GPU, and its launches."""

    def __init__(self, gpu: SmokeGpu) -> None:
        self.gpu = gpu
        rng = np.random.default_rng(0)
        self.given = [rng.standard_normal(N).astype(np.float32) for _ in range(2)]
        self.places = [gpu.device.allocate(4 * N) for _ in range(3)]
        for place, array in zip(self.places, self.given, strict=False):
            gpu.device.upload(place, array)

    def poison(self) -> None:
        self.gpu.device.fill(self.places[2], 0xFF, 4 * N)

    def assert_right(self) -> None:
        result = aligned_empty((N,), np.float32)
        self.gpu.device.synchronise()
        self.gpu.device.download(self.places[2], result)
        np.testing.assert_allclose(result, 2 * self.given[0] + self.given[1], rtol=1e-6)


def _launch(gpu: SmokeGpu) -> str:
    """load, launch, synchronise, unload, and events around launches."""
    run, device = _Doubling(gpu), gpu.device
    run.poison()
    with loaded(gpu, gpu.build(blocked())) as code:

        def once() -> None:
            launch_all(device, code.module, code.plan, run.places, 0)

        once()
        run.assert_right()
        seconds = device.seconds(lambda: repeat(10, once))
    assert seconds > 0, "ten launches take no time"
    return f"{seconds * 1e5:.1f} us a launch"


def _graph(gpu: SmokeGpu) -> str:
    """capture, replay twice, discard."""
    run, device = _Doubling(gpu), gpu.device
    with loaded(gpu, gpu.build(blocked())) as code:
        graph = device.capture(lambda: launch_all(device, code.module, code.plan, run.places, 0))
        for _ in range(2):
            run.poison()
            device.replay(graph)
            run.assert_right()
        device.discard(graph)
    return ""


def _branches(gpu: SmokeGpu) -> str:
    """Calls on two branches of a graph, and one that reads what both wrote."""
    run, device = _Doubling(gpu), gpu.device
    a, b, first = run.places
    second, third = (device.allocate(4 * N) for _ in range(2))
    with loaded(gpu, gpu.build(blocked())) as code:

        def work(*places: int) -> Callable[[], None]:
            return lambda: launch_all(device, code.module, code.plan, places, 0)

        works = [work(a, b, first), work(b, a, second), work(first, second, third)]
        orders = [Order(0), Order(1), Order(0, (1,))]
        graph = device.capture(lambda: repeat(2, lambda: device.overlap(works, orders)))
        result = aligned_empty((N,), np.float32)
        for _ in range(2):
            for place in (first, second, third):
                device.fill(place, 0xFF, 4 * N)
            device.replay(graph)
            device.download(third, result)
            one, two = run.given
            np.testing.assert_allclose(result, 5 * one + 4 * two, rtol=1e-5, atol=1e-5)
        device.discard(graph)
    device.release(second)
    device.release(third)
    return ""


def _streams(gpu: SmokeGpu) -> str:
    """Wait for the default stream, and have a producer follow ours."""
    told: list[int] = []
    gpu.device.wait_for(1)
    gpu.device.follow(told.append)
    gpu.device.synchronise()
    assert len(told) == 1 and told[0], "the producer is told no stream"
    return ""


def _refused(gpu: SmokeGpu) -> str:
    """A module that is not valid is refused, and the context stays usable."""
    try:
        gpu.device.load(b"no cubin")
    except (CodegenError, ValueError) as error:
        _memory(gpu)
        return f"as it should: {error}".splitlines()[0]
    raise AssertionError("it is not refused")


def _run(gpu: SmokeGpu, dag: ComputeDAG, state: State, error: float = 1e-4) -> str:
    """Run *state* with guards around its memory, compare its results, and time it."""
    task = GpuTask(dag, 0, gpu.device)
    with task.load(gpu.build(state)) as candidate:
        candidate.check()
        for got, want in zip(task.results(), expected(dag, task.values()), strict=True):
            slack = error * max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=slack)
        candidate.prepare(0)
        seconds = candidate.burst(candidate.unit) / candidate.unit
    return f"{seconds * 1e6:.1f} us"


def _shared(gpu: SmokeGpu) -> str:
    """A block with 64 KiB of shared memory, which it has to opt in to."""
    a = placeholder((2, 1 << 14), name="A")
    dag = ComputeDAG.of(
        [a, compute((2, 1 << 14), lambda i, j: a[i, (1 << 14) - 1 - j] + 1.0, name="C")]
    )
    if gpu.target.max_shared_optin_bytes < 1 << 16:
        raise Skipped(f"{gpu.target.cpu} has no 64 KiB for a block")
    state, (_, inner) = State.initial(dag).split("C", "j", (256,))
    state = state.bind("C", "i", "blockIdx.x").bind("C", inner, "threadIdx.x")
    state, copy = state.cache_read("A", "shared", ["C"])
    state = state.compute_at(copy, "C", "i")
    state, (_, mine) = state.split(copy, state.stage(copy).iters[-1], (256,))
    state = state.bind(copy, mine, "threadIdx.x")
    plan = gpu.build(state)
    with loaded(gpu, plan) as code:
        [launch] = code.plan.launches
    assert launch.dynamic_shared_bytes == 1 << 16, launch
    return _run(gpu, dag, state)


def _pipeline(gpu: SmokeGpu) -> str:
    """Asynchronous copies of tiles, with two in flight."""
    return _run(gpu, *drawn(gpu, product("float32", 64, 64, 64), "pipeline", pipeline=2))


def _thread_sums(gpu: SmokeGpu) -> str:
    """Threads of a block that share a sum exchange registers."""
    return _run(gpu, *drawn(gpu, row_sums(3, 2048), "threadIdx.x"))


def _products(kind: str, size: int, steps: str, **columns: int) -> Callable[[SmokeGpu], str]:
    def check(gpu: SmokeGpu) -> str:
        rounded = kind == "float32"
        precision: Precision = "tf32" if rounded else "default"
        found = drawn(gpu, product(kind, size, size, size), steps, precision, **columns)
        return _run(gpu, *found, error=4e-3 if rounded else 1e-3)

    return check


def _measured(gpu: SmokeGpu) -> str:
    """Check, time, lose the context, continue with another worker; time two, alternating."""
    task = Task(ComputeDAG.of(doubling()), gpu.target, 1, name="doubling")
    with tempfile.TemporaryDirectory() as folder:
        options = MeasureOptions(builders=1, lock_folder=Path(folder))
        with GpuRunner(
            [Gpu(0, "smoke")], options, PlantingBuilder(gpu, "crash"), module=gpu.worker
        ) as runner:
            [first] = runner.measure(task, [blocked()], incumbent_s=None)
            assert first.ok, first.reason
            before = runner.workers[0].pid
            [lost] = runner.measure(task, [planted_state()], incumbent_s=None)
            assert lost.kind is TrialKind.CRASH, f"a lost context is {lost.kind}: {lost.reason}"
            [after] = runner.measure(task, [blocked(64)], incumbent_s=None)
            assert after.ok, after.reason
            assert runner.workers[0].pid != before, "the worker was not replaced"
            again = runner.retime(task, [blocked(), blocked(64)], rounds=3)
    assert again is not None and all(result.ok for result in again)
    return f"{first.median_s * 1e6:.1f} us"


def _kernel(gpu: SmokeGpu) -> str:
    """A kernel that is called three times (launched, captured, replayed) and timed."""
    state, dag = blocked(), ComputeDAG.of(doubling())
    compiled = CompiledTask.of(dag, gpu.build(state), program=lower(state).run)
    kernel = Kernel(compiled, target=gpu.target, threads=1)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    for _ in range(3):
        np.testing.assert_allclose(kernel(a, b), 2 * a + b, rtol=1e-6)
    return ""


def _real(gpu: SmokeGpu) -> None:
    if not isinstance(gpu.device, CudaDevice):
        raise Skipped("only a real GPU can load libraries and share arrays")


def _arrays(gpu: SmokeGpu) -> str:
    """A kernel that reads and writes cupy's arrays in place."""
    _real(gpu)
    import cupy

    a, b = (cupy.random.rand(N, dtype=cupy.float32) for _ in range(2))
    out = cupy.empty(N, dtype=cupy.float32)
    kernel = ansorpy.build(blocked(), target=gpu.target)
    for _ in range(3):
        out.fill(0)
        kernel(a, b, out=out)
        np.testing.assert_allclose(cupy.asnumpy(out), cupy.asnumpy(2 * a + b), rtol=1e-6)
    return ""


def small_network() -> onnx.ModelProto:
    """``relu(x W) + softmax(x) W``: two branches."""
    weight = np.random.default_rng(2).standard_normal((16, 24)).astype(np.float32)
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", (8, 16)), ("y", (8, 24)))
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Softmax", ["x"], ["s"], axis=1),
        helper.make_node("MatMul", ["s", "w"], ["t"]), helper.make_node("Add", ["q", "t"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "smoke", [x], [y], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _model(gpu: SmokeGpu) -> str:
    """A compiled network in memory, call by call, and then as a library that is loaded."""
    _real(gpu)
    network = small_network()
    x = np.random.default_rng(3).standard_normal((8, 16)).astype(np.float32)
    weight = numpy_helper.to_array(network.graph.initializer[0])
    share = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    want = np.maximum(x @ weight, 0) + share @ weight
    with tempfile.TemporaryDirectory() as folder:
        model = ansorpy.compile(
            network, effort="none", target=gpu.target, db=Path(folder) / "smoke.db"
        )
        library = ansorpy.load(model.export(Path(folder) / "smoke.so"))
        for runs in (model, library):
            for _ in range(3):
                [y] = runs.run(None, {"x": x})
                np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
        times = model.profile({"x": x})
    return ", ".join(f"{name}: {seconds * 1e6:.1f} us" for name, seconds in times)


def _clusters(gpu: SmokeGpu) -> str:
    """Pairs of blocks that share copies of boxes."""
    dag, state = drawn(gpu, product("float16", 512, 512, 64), "wgmma", bulk=1, pipeline=2)
    for name in [stage.name for stage in state.stages if stage.swizzle]:
        state = state.bulk(name, 2)
    return _run(gpu, dag, state, error=1e-3)


CHECKS: dict[str, Callable[[SmokeGpu], str]] = {
    "driver.memory": _memory,
    "driver.launch": _launch,
    "driver.graph": _graph,
    "driver.branches": _branches,
    "driver.streams": _streams,
    "driver.refused": _refused,
    "code.shared": _shared,
    "code.cp_async": _pipeline,
    "code.thread_sums": _thread_sums,
    "code.mma_sync.float16": _products("float16", 32, "'mma"),
    "code.mma_sync.bfloat16": _products("bfloat16", 32, "'mma"),
    "code.mma_sync.int8": _products("int8", 32, "'mma"),
    "code.mma_sync.tf32": _products("float32", 32, "'mma"),
    "code.wgmma.float16": _products("float16", 128, "wgmma"),
    "code.wgmma.int8": _products("int8", 128, "wgmma"),
    "code.wgmma.tf32": _products("float32", 128, "wgmma"),
    "code.boxes.float16": _products("float16", 128, "wgmma", bulk=1, pipeline=2),
    "code.boxes.bfloat16": _products("bfloat16", 192, "wgmma", bulk=1, pipeline=3),
    "code.clusters.float16": _clusters,
    "measure.compare": compared,
    "measure.worker": _measured,
    "runtime.kernel": _kernel,
    "runtime.arrays": _arrays,
    "runtime.model": _model,
}
"""The checks by name; each returns a remark, and raises an error if it fails."""
