"""Random GPU schedules of the operator families as C text, run on the host, compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from ansorpy.codegen.cuda.emit.program import CudaSource, emit_cuda
from ansorpy.errors import CodegenError, ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA
from ansorpy.schedule.lowering.program import Lowered, lower
from tests.budget import pairs, some
from tests.codegen.cuda.emulator import TARGET, Array, Emulated, needs_compiler
from tests.conftest import session_seed
from tests.properties.random_elements import random_values
from tests.rules.gpu_workloads import WORKLOADS

pytestmark = needs_compiler
PRESETS = {"ansor": (ANSOR_CUDA, 1), "default": (CUDA, 1)}
"""And of how many placed sketches of a workload a program is run."""


@dataclass(frozen=True)
class Drawn:
    """One program of a workload, and what it is given."""

    workload: str
    dag: ComputeDAG
    lowered: Lowered
    source: CudaSource
    data: Mapping[str, Array]


def draw(workload: str, preset: str, rng: np.random.Generator) -> dict[str, Drawn]:
    """Random programs of a workload, by the names of their kernels."""
    dag = ComputeDAG.of(WORKLOADS[workload])
    data, found = random_values(dag, rng), dict[str, Drawn]()
    rules, sketches = PRESETS[preset]
    for sketch in SketchSampler(Task(dag, TARGET, 1), rules).draw(sketches, rng):
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)][:1]:
            name = f"{workload}_{preset}_{len(found)}"
            try:
                lowered = lower(sketch.resolve(row))
                source = emit_cuda(lowered.run, TARGET, name)
            except (CodegenError, ScheduleError):
                continue  # a trial that fails with a reason: too much is unrolled, say
            found[name] = Drawn(workload, dag, lowered, source, data)
    return found


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> dict[str, Drawn]:
    rng = np.random.default_rng(session_seed(request.config))
    found: dict[str, Drawn] = {}
    for workload, preset in pairs(some(WORKLOADS), PRESETS):
        found |= draw(workload, preset, rng)
    return found


@pytest.fixture(scope="module")
def emulated(drawn: dict[str, Drawn], tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    sources = [(name, one.lowered.run, one.source) for name, one in drawn.items()]
    return Emulated(sources, tmp_path_factory.mktemp("schedules"))


def arguments(program: Program, known: Mapping[str, Array]) -> list[Array]:
    """What *program* is called with; outputs hold NaN."""
    return [
        np.full(p.buffer.shape, np.nan if p.buffer.dtype.is_float else 77, p.buffer.dtype.numpy)
        if p.role is Role.OUTPUT
        else np.ascontiguousarray(known[p.buffer.name])
        for p in program.params
    ]


@pytest.mark.parametrize("workload", some(WORKLOADS))
def test_programs_compute_the_definition(
    workload: str, drawn: dict[str, Drawn], emulated: Emulated
) -> None:
    mine = {name: one for name, one in drawn.items() if one.workload == workload}
    assert mine
    for name, one in mine.items():
        known = dict(one.data)
        if one.lowered.bind is not None:
            made = arguments(one.lowered.bind, known)
            run_program(one.lowered.bind, made)
            bound = zip(one.lowered.bind.params, made, strict=True)
            known |= {param.buffer.name: array for param, array in bound}
        arrays = arguments(one.lowered.run, known)
        emulated(name, arrays)
        expected = run_dag(one.dag, one.data, dtype=DType.FLOAT64)
        outputs = arrays[len(arrays) - len(expected) :]
        for got, want in zip(outputs, expected, strict=True):
            slack = 1e-4 * max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(got, want, rtol=0, atol=slack, err_msg=name)
