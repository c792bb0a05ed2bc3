"""Random programs on this machine's GPU, compared with the interpreter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.errors import CodegenError, ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Extent
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.mma import MmaStep
from benchmarks.cuda.figures.attention import attention
from benchmarks.cuda.smoke.machine import SmokeGpu, real
from tests import tensor_cores
from tests.campaigns.campaign import Campaign, Tally
from tests.campaigns.schedules import from_rules, is_legal, legal
from tests.properties.launched_dags import random_launched_program
from tests.properties.random_dags import drawn_sizes, random_bound_state
from tests.properties.random_elements import TYPES
from tests.properties.random_operators import random_definition
from tests.rounding import Reference
from tests.rules.gpu_workloads import WORKLOADS

__all__ = ["DEVICE", "PROGRAMS", "Program", "device_campaign", "drawn_programs"]

_Key = tuple[ComputeDAG, tuple[Extent, ...]]
"""A definition and the sizes of its dimensions."""

_ROWS = 3
"""Programs of each sketch: drawing a sketch costs as much as building some programs."""
_SIZES = 3
_OTHERS = 0.5
_DRAWS = 8
_ATTENTIONS = (1, 13, 16, 48, 64, 80), (8, 16, 24, 64), (1, 2, 3)
"""Lengths, widths and numbers of heads."""
_FEATURES = {
    "shared memory": "__shared__", "cp.async": "cp.async.c", "copies of boxes": "cp.async.bulk",
    "mma.sync": "mma.sync", "wgmma": "wgmma.mma_async", "exchanges": "__shfl",
}  # fmt: skip
"""What the text of a program has, by what is counted."""


@dataclass(frozen=True)
class Program:
    """A schedule of *dag*, of which *kind* it is, and sizes of its dimensions to run it at."""

    kind: str
    dag: ComputeDAG
    state: State
    sizes: Sequence[Sizes] = ({},)


def _bindings(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """Random bindings of random definitions."""
    for _ in range(_DRAWS):
        state = legal(lambda: random_bound_state(rng, int(rng.integers(1, 9)), TYPES, _OTHERS))
        if is_legal(state):
            yield Program("bindings", state.definition, state)


def _rules(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """What the rules draw for random definitions."""
    dag = random_definition(rng, TYPES, more=0.4)
    for state in from_rules(dag, gpu.target, 1, rng):
        yield Program("rules", dag, state)


def _suite(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """What the rules draw for the operator suite in small, odd, prime and single sizes."""
    dag = ComputeDAG.of(list(WORKLOADS.values())[int(rng.integers(len(WORKLOADS)))])
    for state in from_rules(dag, gpu.target, 1, rng):
        yield Program("suite", dag, state)


def _tensor_cores(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """Products in tensor cores, by ``wgmma`` where the GPU has it."""
    every = [*tensor_cores.WORKLOADS.values(), *tensor_cores.LARGE.values()]
    yield from _products(every[int(rng.integers(len(every)))], rng, gpu)


def _products(
    tensors: Sequence[Tensor], rng: np.random.Generator, gpu: SmokeGpu
) -> Iterator[Program]:
    dag = ComputeDAG.of(tensors)
    sampler = SketchSampler(Task(dag, gpu.target, 1, "tf32"))
    numbers = [
        n for n, sketch in enumerate(sampler.sketches)
        if any(isinstance(step, MmaStep) for step in sketch.history)
    ]  # fmt: skip
    grouped = [n for n in numbers if "wgmma" in str(sampler.sketches[n].history)]
    for number in rng.permutation([*grouped, *numbers])[:3]:
        sketch = sampler.place(int(number), rng)
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)][:_ROWS]:
            yield Program("tensor cores", dag, sketch.resolve(row))


def _attention(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """Attention in float16, whose products tensor cores compute."""
    length, width, heads = (int(rng.choice(among)) for among in _ATTENTIONS)
    dag = ComputeDAG.of(attention(length, width, heads))
    sampler = SketchSampler(Task(dag, gpu.target, 1))
    for sketch in sampler.draw(min(8, len(sampler.pairs)), rng):
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)][:_ROWS]:
            yield Program("attention", dag, sketch.resolve(row))


def _for_all_sizes(rng: np.random.Generator, gpu: SmokeGpu) -> Iterator[Program]:
    """One program for all sizes of the dimensions of a random definition, at some of them."""
    for preset in (ANSOR_CUDA, CUDA):
        found = random_launched_program(rng, TYPES, gpu.target, preset)
        if found is not None:
            dag = found[0].definition
            sizes = [drawn_sizes(dag.dims, rng) for _ in range(_SIZES)]
            yield Program("all sizes", dag, found[0], sizes)


PROGRAMS: tuple[Callable[[np.random.Generator, SmokeGpu], Iterator[Program]], ...] = (
    _rules, _tensor_cores, _suite, _bindings, _for_all_sizes, _tensor_cores, _suite, _attention,
)  # fmt: skip
"""Kinds of cases, in turn."""


def drawn_programs(rng: np.random.Generator, number: int, gpu: SmokeGpu) -> Iterator[Program]:
    """The programs of case *number*."""
    return PROGRAMS[number % len(PROGRAMS)](rng, gpu)


def device_campaign(gpu: Callable[[], SmokeGpu]) -> Campaign:
    """A campaign on the GPU that *gpu* opens in each process."""
    about = "random programs on this machine's GPU, compared with the interpreter"
    return Campaign(about, partial(_case, gpu), short=0, limit_s=60.0)


def _case(gpu: Callable[[], SmokeGpu], rng: np.random.Generator, number: int) -> Tally:
    opened, seen, where = _opened(gpu), Tally(), f"case {number}"
    references: dict[_Key, _OnDevice] = {}
    for program in drawn_programs(rng, number, opened):
        _check(program, opened, references, seen, where)
    return seen


@functools.cache
def _opened(gpu: Callable[[], SmokeGpu]) -> SmokeGpu:
    return gpu()


class _OnDevice:
    """A definition's data in the GPU's memory, and what every program must compute of it."""

    def __init__(self, dag: ComputeDAG, gpu: SmokeGpu) -> None:
        self.task = GpuTask(dag, 0, gpu.device)
        self.reference = Reference(dag, self.task.values())


def _check(
    program: Program, gpu: SmokeGpu,
    references: dict[_Key, _OnDevice], seen: Tally, where: str,
) -> None:  # fmt: skip
    """Build *program*, run it, compare, and count it."""
    try:
        lowered = lower(program.state)
        source = emit_cuda(lowered.run, gpu.target, "kernel").text
        built = gpu.build(program.state)
    except (CodegenError, ScheduleError) as error:
        reason = str(error).splitlines()[0]
        assert "NVRTC rejects" not in reason, f"{error}\n{program.state.history}"
        seen.kinds[f"refused, {type(error).__name__}"] += 1
        return
    for sizes in program.sizes:
        key = program.dag, tuple(sizes[dim] for dim in program.dag.dims)
        if key not in references:
            references[key] = _OnDevice(dag_at(program.dag, sizes), gpu)
        there = references[key]
        with there.task.load(built.at(sizes)) as candidate:
            try:
                candidate.check()
                there.task.results()
            except CodegenError as error:
                raise AssertionError(f"{error}\nat {sizes}: {program.state.history}") from error
        if there.reference.reason:
            seen.kinds[f"not compared, {there.reference.reason}"] += 1
            return
        _compare(program, there, sizes, seen, where)
    _count(program, source, seen)


def _compare(program: Program, there: _OnDevice, sizes: Sizes, seen: Tally, where: str) -> None:
    definition = dag_at(program.state.definition, sizes)
    shares = there.reference.shares(there.task.results(), definition)
    for output, share in zip(there.task.dag.outputs, shares, strict=True):
        assert share <= 1, (
            f"{output.name}: {share:.3g} of its bound\nat {sizes}: {program.state.history}"
        )
        if output.dtype.is_float:
            seen.note(f"share of its bound, {output.dtype.value}", share, where)


def _count(program: Program, source: str, seen: Tally) -> None:
    """Count the program, its kind, its element type, and what its text has."""
    kinds = ["programs", program.kind, (program.dag.args or program.dag.outputs)[0].dtype.value]
    kinds += [name for name, text in _FEATURES.items() if text in source]
    kinds += ["split reductions"] if "rfactor" in str(program.state.history) else []
    kinds += ["several kernels"] if source.count("__global__") > 1 else []
    seen.kinds.update(kinds)


DEVICE = device_campaign(real)
