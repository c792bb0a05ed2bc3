"""The GPU that checks run on, and programs for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.device.protocol import Device
from ansorpy.codegen.cuda.launch.packed import PACKING, packed
from ansorpy.codegen.cuda.launch.plan import LaunchPlan
from ansorpy.errors import ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = [
    "Fault",
    "Loaded",
    "Skipped",
    "SmokeGpu",
    "blocked",
    "doubling",
    "drawn",
    "expected",
    "loaded",
    "real",
]

Fault = Literal["crash", "hang", "wrong"]
N = 1920

_FAULTS: Mapping[Fault, str] = {
    "crash": "*reinterpret_cast<float*>(1ull << 60) = 1.0f;",
    "hang": "for (const volatile float* at = a; *at == *at;) {}",
    "wrong": "c[blockIdx.x * blockDim.x + threadIdx.x] = 0.5f;",
}
"""What a kernel does instead of its work."""


class Skipped(Exception):
    """This GPU does not have the checked feature, or the check's package is not installed."""


@dataclass(frozen=True)
class SmokeGpu:
    """A device, the target of its code, and a function that builds the code.

    Args:
        worker: Module of the run worker that measures on the device.
        planted: A program of :func:`doubling` with a fault: it destroys the context (``crash``),
            does not return (``hang``), or computes something else (``wrong``).
        launcher: Module that launches stored programs on the device, in a process of its own.
    """

    device: Device
    target: Target
    build: Callable[[State], Built]
    planted: Callable[[Fault], Built]
    worker: str = "ansorpy.measure.gpu.handlers"
    launcher: str = "benchmarks.cuda.correctness.launches"


@dataclass(frozen=True)
class Loaded:
    """A program on the GPU."""

    plan: LaunchPlan
    module: object


def doubling() -> list[Tensor]:
    """``C = 2 A + B``."""
    a, b = placeholder((N,), name="A"), placeholder((N,), name="B")
    return [a, b, compute((N,), lambda i: a[i] * 2.0 + b[i], name="C")]


def blocked(threads: int = 32) -> State:
    """:func:`doubling` in blocks of *threads* threads."""
    state, (outer, inner) = State.initial(doubling()).split("C", "i", (threads,))
    return state.bind("C", outer, "blockIdx.x").bind("C", inner, "threadIdx.x")


@contextmanager
def loaded(gpu: SmokeGpu, built: Built) -> Iterator[Loaded]:
    """*built* loaded as a module on the GPU, until the block ends."""
    plan, cubin = PACKING.unpack(built.run.code)
    module = gpu.device.load(cubin)
    try:
        yield Loaded(plan, module)
    finally:
        gpu.device.unload(module)


def drawn(
    gpu: SmokeGpu, tensors: list[Tensor], steps: str, precision: Precision = "default",
    **columns: int,
) -> tuple[ComputeDAG, State]:  # fmt: skip
    """A random program whose steps name *steps*, with at least these values in its columns.

    A column is given by the end of its name.
    """
    dag, rng = ComputeDAG.of(tensors), np.random.default_rng(0)
    sampler = SketchSampler(Task(dag, gpu.target, 1, precision))
    for sketch in sampler.draw(4 * len(sampler.pairs), rng):
        if steps in str(sketch.state.history):
            for row in _rows(sketch, columns, rng):
                try:
                    state = sketch.resolve(row)
                    lower(state)
                except ScheduleError:
                    continue
                return dag, state
    raise Skipped(f"no program for {gpu.target.cpu} has {steps}")


def _rows(
    sketch: PlacedSketch, columns: Mapping[str, int], rng: np.random.Generator
) -> list[Array]:
    table = sketch.sample(512, rng)
    keeps = sketch.valid(table)
    for ending, least in columns.items():
        found = [n for n, name in enumerate(sketch.columns) if name.endswith(ending)]
        keeps &= (table[:, found] >= least).any(axis=1) if found else False
    return list(table[keeps][:16])


def expected(dag: ComputeDAG, values: Mapping[str, Array]) -> list[Array]:
    """The results of the interpreter in float64."""
    return run_dag(dag, dict(values), dtype=DType.FLOAT64)


def real() -> SmokeGpu:
    """This machine's first GPU.

    Raises:
        MissingDependency: There is no GPU, or no cupy.
    """
    target = Target.parse("cuda")

    def build(state: State) -> Built:
        return build_lowered(lower(state), target, "smoke")

    return SmokeGpu(CudaDevice(0), target, build, lambda fault: _planted(target, build, fault))


def _planted(target: Target, build: Callable[[State], Built], fault: Fault) -> Built:
    """The launches of a correct program, with a kernel that has *fault*."""
    built = build(blocked())
    plan, _ = PACKING.unpack(built.run.code)
    [launch] = plan.launches
    source = (
        f'extern "C" __global__ void {launch.kernel}(float* a, float* b, float* c) {{\n'
        f"  {_FAULTS[fault]}\n}}\n"
    )
    cubin, _ = compile_source(source, target)
    code = CudaCode(source, cubin, plan, (), 0.0)
    return replace(built, run=packed(code, built.run.symbol))
