"""Attention in the registers of warps as C text: run on the host, and compiled for GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Program
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import needs_compiler
from tests.codegen.cuda.products import assert_text_computes
from tests.rules.attentions import attend, heads_attend
from tests.tensor_cores import GPU

H100 = Target.parse("sm_90a")
WORKLOADS: dict[str, list[Tensor]] = {
    "float16": attend(2, 37, 51, 40, 24),
    "bfloat16": attend(1, 28, 70, 16, 32, dtype="bfloat16", narrow=False),
    "masked": heads_attend(1, 29, 45, 2, 16, masks=[(1, 1, 29, 45)], dtype="float16"),
}


def program(tensors: list[Tensor], rng: np.random.Generator, **columns: int) -> Program:
    """A random program, with some numbers given."""
    sketch = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1)).place(0, rng)
    table = sketch.sample(64, rng)
    for name, number in columns.items():
        table[:, sketch.columns.index(name)] = number
    return lower(sketch.resolve(table[sketch.valid(table)][0])).run


@needs_compiler
def test_the_text_computes_what_the_program_does(tmp_path: Path, rng: np.random.Generator) -> None:
    drawn = {f"{name}_0": program(tensors, rng) for name, tensors in WORKLOADS.items()}
    texts = {symbol: (p, emit_cuda(p, GPU, symbol)) for symbol, p in drawn.items()}
    assert_text_computes(texts, WORKLOADS, "quad_", tmp_path, rng, 3e-3)


def test_the_text_of_a_block_of_keys(rng: np.random.Generator) -> None:
    text = emit_cuda(program(attend(1, 64, 128, 32, 32), rng), GPU, "attention").kernels
    assert "ldmatrix_b_float16_pair(k_warp" in text and "ldmatrix_b_float16_trans_pair(v_" in text
    assert "to_float16((float)power_of_two<true>((scores_warp" in text
    assert "quad_max_float32(top_quad" in text
    assert "mma_m16n8k16_float32_float16_float16(total_columns_warp" in text
    wide = program(attend(1, 64, 128, 32, 32, narrow=False), rng)
    text = emit_cuda(wide, GPU, "attention").kernels
    assert "quad_sum_float32(total_quad" in text and "power_of_two" not in text


@needs_nvrtc
@pytest.mark.parametrize("width, steps", [(64, 4), (128, 2)])
def test_registers_hold_all_of_a_warp(width: int, steps: int, rng: np.random.Generator) -> None:
    tensors = attend(16, 1024, 1024, width, width)
    given = {"mixed.warp.i/1": 4, "mixed.warp.i/2": 1, "mixed.warp.jm/1": 1}
    made = program(tensors, rng, **given, **{"mixed.warp.jm/2": steps})
    (used,) = build_cuda(made, H100, symbol="attention").resources
    assert used.spilled_bytes == used.stack_bytes == 0
    assert used.registers <= 200
