"""What the rules derive compiles for every kind of machine, whatever its vectors hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests import workloads
from tests.budget import pairs

RISCV = Target.parse("riscv64-unknown-linux-gnu")
TARGETS = {
    **{name: Target.parse(name) for name in ("x86-64-v3", "x86-64-v4", "cortex-a76", "rv64gcv")},
    "wasm32": Target.parse("wasm32-unknown-unknown"),
    "two lanes": replace(RISCV, vector_bits=64),
    "no vectors": replace(RISCV, vector_bits=32),
}


def bytes_product() -> list[Tensor]:
    """A product of bytes with int32 sums."""
    a = placeholder((6, 16), DType.UINT8, name="a")
    b = placeholder((20, 16), DType.INT8, name="b", constant=True)
    k = reduce_axis(16, name="k")
    wide = DType.INT32
    return [a, b, compute(
        (6, 20), lambda i, j: sum_over(a[i, k].astype(wide) * b[j, k].astype(wide), axis=k),
        name="out",
    )]  # fmt: skip


FAMILIES = {
    "matmul": workloads.matmul(12, 20, 6, constant=True),
    "bytes": bytes_product(),
    "transposed matmul": workloads.transposed_matmul(9, 20, 12),
    "conv": workloads.conv2d_bn_relu(1, 6, 5, 3, 20, stride=2),
    "transposed conv": workloads.transposed_conv1d(5, 3, 7, 3),
    "winograd": workloads.chosen_winograd(1, 7, 6, 5, 18),
    "depthwise": workloads.depthwise_pointwise(1, 6, 7, 5, 20),
    "pool": workloads.max_pool2d(1, 5, 4, 3),
    "attention": workloads.attention(2, 6, 9, 16),
    "softmax": workloads.softmax(2, 11, 21),
    "layer norm": workloads.layer_norm(13, 37),
    "matrix norm": workloads.matrix_norm(9, 5, 7),
}


@pytest.mark.parametrize(("family", "name"), pairs(FAMILIES, TARGETS))
def test_a_derived_program_compiles(family: str, name: str, rng: np.random.Generator) -> None:
    tensors, target = FAMILIES[family], TARGETS[name]
    built = 0
    for sketch in SketchSampler(Task(ComputeDAG.of(tensors), target, 2)).draw(1, rng):
        table = sketch.sample(32, rng)
        for row in table[sketch.valid(table)][:1]:
            programs = lower(sketch.resolve(row))
            for program in (programs.run, programs.bind):
                if program is not None:
                    assert build(program, target, symbol="kernel").code
            built += 1
    assert built
