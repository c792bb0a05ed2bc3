"""ComputeAtBlock: one pass over rows, with all intermediate values in the cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.rules.sketch.compute_at_block import ComputeAtBlock
from tests import workloads
from tests.rules.asking import ALONE, APPLY, CPU, SKIP, ask, derive, shows

RULE = ComputeAtBlock()


def test_a_softmax_is_computed_a_block_of_rows_at_a_time() -> None:
    [(state, following)] = derive(RULE, workloads.softmax(12, 64, 128), "norm")
    assert following == "", "all stages have their place"
    shows(
        state,
        """
        for i0 in 0..12
          for i1.0 in 0..?
            for i0 in 0..12
              for i1 in 0..64
                for k1 in 0..128  # reduce
                  max[i0, i1] max= ...
            for i0 in 0..12
              for i1 in 0..64
                for i2 in 0..128
                  exp[i0, i1, i2] = ...
            for i0 in 0..12
              for i1 in 0..64
                for k2 in 0..128  # reduce
                  sum[i0, i1] += ...
            for i1.1 in 0..?
              for i2 in 0..128
                norm[i0, i1, i2] = ...
        """,
    )


def test_a_layer_norm_keeps_what_a_row_shares_and_inlines_the_rest() -> None:
    [(state, _)] = derive(RULE, workloads.layer_norm(128, 768), "norm")
    assert [s.name for s in state.stages if s.inlined] == ["mean", "apart"]
    attached = [s.name for s in state.stages if s.attach is not None]
    assert attached == ["total", "squares", "spread"], "the root is taken once a row"


def over_channels(n: int, c: int, w: int) -> list[Tensor]:
    """A softmax over the middle axis."""
    x = placeholder((n, c, w), name="X")
    k = reduce_axis(c, name="k")
    total = compute((n, w), lambda i, j: ap.sum(ap.exp(x[i, k, j]), axis=k), name="total")
    return [x, compute((n, c, w), lambda i, a, j: ap.exp(x[i, a, j]) / total[i, j], name="out")]


def test_rows_may_lie_along_any_axis() -> None:
    [(state, _)] = derive(RULE, over_channels(8, 6, 32), "out")
    assert [it.name for it in state.stage("out").iters] == ["i", "j.0", "a", "j.1"]


@pytest.mark.parametrize(
    ("tensors", "answer"),
    [
        (workloads.softmax(64, 32), ALONE),
        (workloads.softmax(3, 32), APPLY),  # three rows do not keep four cores busy
        (workloads.softmax(1, 32), SKIP),
        (workloads.matrix_norm(16, 8, 8), ALONE),
        (workloads.matrix_norm(1, 8, 8), SKIP),
        (workloads.min_reduce(), SKIP),  # one stage has nothing to place
        (workloads.matmul(8, 8, 8), SKIP),
        (workloads.conv2d_bn_relu(1, 8, 8, 4, 4), SKIP),
        (workloads.max_pool2d(1, 8, 8, 4), SKIP),  # windows overlap
        (workloads.double_matmul(8), SKIP),
    ],
)
def test_where_it_applies(tensors: list[Tensor], answer: object) -> None:
    assert ask(RULE, tensors, tensors[-1].name).answer is answer


def test_a_vector_times_a_constant_matrix_is_left_to_tiles() -> None:
    x, w, c = workloads.matmul(1, 64, 48, constant=True)
    d = compute((1, 64), lambda i, j: ap.maximum(c[i, j], 0.0), name="D")
    assert ask(RULE, [x, w, d], "D").answer is SKIP


def test_only_the_last_stage_is_asked() -> None:
    assert ask(RULE, workloads.softmax(64, 32), "sum").reason == "not the only output"


def test_two_outputs_have_no_common_block() -> None:
    *inputs, norm = workloads.softmax(64, 32)
    other = compute((64, 32), lambda i, j: norm[i, j] * 2.0, name="other")
    assert ask(RULE, [*inputs, norm, other], "other").answer is SKIP


def test_a_sum_over_rows_is_no_part_of_a_block_of_rows() -> None:
    x = placeholder((64, 32), name="X")
    k = reduce_axis(64, name="k")
    total = compute((32,), lambda j: ap.sum(x[k, j], axis=k), name="total")
    state = [x, compute((64, 32), lambda i, j: x[i, j] / total[j], name="out")]
    [(made, _)] = derive(RULE, state, "out")
    assert [it.name for it in made.stage("out").iters] == ["j.0", "i", "j.1"]


def test_the_places_stay_when_sketches_are_drawn_and_mutated(rng: np.random.Generator) -> None:
    task = Task(ComputeDAG.of(workloads.softmax(64, 32)), replace(CPU, cores=2), 2)
    sketches = SketchSampler(task, DEFAULT).draw(4, rng)
    assert len(sketches) == 1
    attached = [s.name for s in sketches[0].state.stages if s.attach is not None]
    assert attached == ["max", "exp", "sum"]
    assert sketches[0].neighbour(rng) is None
