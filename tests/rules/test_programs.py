"""Whatever the rules derive computes the definition: random programs, compiled and run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU, CPU, Preset
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests import workloads
from tests.budget import pairs

Arrays = dict[str, npt.NDArray[np.float32]]
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
THREADS = 2

WORKLOADS = {
    "matmul": workloads.matmul(12, 20, 6, constant=True),
    "deep_matmul": workloads.matmul(2, 4, 36),
    "primes": workloads.matmul(7, 13, 11),
    "gram": workloads.gram(17, 9),
    "gram_of_columns": workloads.gram(12, 21, by_columns=True),
    "chain": workloads.double_matmul(6),
    "conv": workloads.conv2d_bn_relu(1, 6, 5, 3, 4),
    "strided_conv": workloads.conv2d_bn_relu(2, 7, 7, 2, 3, stride=2),
    "transposed": workloads.transposed_matmul(9, 20, 12),
    "transposed_conv": workloads.transposed_conv1d(5, 3, 20),
    "odd_transposed_conv": workloads.transposed_conv1d(5, 3, 7, 3),
    "pool": workloads.max_pool2d(1, 5, 4, 3),
    "minimum": workloads.min_reduce(5, 24),
    "softmax": workloads.softmax(3, 12),
    "softmax_rows": workloads.softmax(2, 11, 21),
    "layer_norm": workloads.layer_norm(13, 37),
    "matrix_norm": workloads.matrix_norm(9, 5, 7),
    "winograd": workloads.winograd(1, 5, 4, 2, 2),
    "chosen_winograd": workloads.chosen_winograd(2, 7, 6, 5, 18),
    "depthwise_pointwise": workloads.depthwise_pointwise(1, 6, 7, 5, 20),
    "attention": workloads.attention(2, 6, 9, 16),
    "scalar": workloads.zero_rank_reduce(12),
}


def call(program: Program, arrays: Arrays, symbol: str) -> None:
    """Compile *program* and run it; missing outputs are made, full of NaN."""
    for param in program.params:
        if param.role is Role.OUTPUT:
            made = aligned_empty(param.buffer.shape, np.float32)
            made.fill(np.nan)
            arrays[param.buffer.name] = made
    code = build(program, Target.host(), symbol=symbol)
    workspace = aligned_empty((max(64, code.workspace_bytes(THREADS)),), np.uint8)
    pointers = [arrays[param.buffer.name].ctypes.data for param in program.params]
    table = np.array(pointers, dtype=np.uint64)
    with load([code]) as library:
        run = KERNEL(library.address(symbol))
        assert run(table.ctypes.data, workspace.ctypes.data, THREADS) == 0


def result(state: State, inputs: Mapping[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The first output of the bound *state*."""
    programs, arrays = lower(state), dict(inputs)
    if programs.bind is not None:
        call(programs.bind, arrays, "bind")
    call(programs.run, arrays, "run")
    return arrays[state.current_dag.outputs[0].name]


@pytest.mark.parametrize(("name", "preset"), pairs(WORKLOADS, (ANSOR_CPU, CPU)))
def test_random_programs_compute_the_definition(
    name: str, preset: Preset, rng: np.random.Generator
) -> None:
    dag = ComputeDAG.of(WORKLOADS[name])
    inputs = {}
    for op in dag.args:
        inputs[op.name] = aligned_empty(op.shape, np.float32)
        inputs[op.name][...] = rng.standard_normal(op.shape)
    (expected,) = run_dag(dag, inputs, dtype=DType.FLOAT64)
    sampler = SketchSampler(Task(dag, Target.host(), THREADS), preset)
    sketch = sampler.draw_one(rng)
    table = sketch.sample(32, rng)
    both = np.concatenate((table, sketch.mutate(table, rng)))
    state = sketch.resolve(both[sketch.valid(both)][-1])  # a mutated one if any is valid
    found = result(state, inputs)
    tolerance = 2e-5 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=str(state))
