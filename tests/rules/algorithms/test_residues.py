"""Transposed convolutions a residue at a time: no tap is multiplied by zero, nor taken twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.strategies import DataObject, integers
from hypothesis.strategies import data as draws

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import If, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.residues import Residues, residues
from ansorpy.rules.algorithms.subpixel import Subpixel, subpixel
from ansorpy.rules.algorithms.transposed import find_transposed
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.schedule.lowering.program import lower
from tests.budget import examples
from tests.properties.test_schedules import inputs_of, interpreted
from tests.rules.algorithms.transposed import (
    by_residue,
    depthwise,
    gathered,
    grouped,
    zeros_inserted,
)
from tests.rules.asking import CPU


def assert_equal(tensors: list[Tensor], seed: int) -> None:
    dag = ComputeDAG.of(tensors)
    [conv] = find_transposed(dag)
    made = [residues(dag, conv), residues(dag, conv, as_groups=True)]
    if all(abs(w.step) == 1 for w in conv.windows):
        made.append(subpixel(dag, conv))
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    for definition in made:
        assert definition.error == 0.0 and definition.dag.args == dag.args
        [got] = run_dag(definition.dag, data, dtype=DType.FLOAT64)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@examples(40)
@given(draw=draws(), rank=integers(1, 3), seed=integers(0, 2**31))
def test_it_computes_the_transposed_convolution(draw: DataObject, rank: int, seed: int) -> None:
    sizes = [draw.draw(integers(2, 5)) for _ in range(rank)]
    strides = [2, *(draw.draw(integers(1, 4)) for _ in range(rank - 1))]
    taps = [draw.draw(integers(1, 5)) for _ in range(rank)]
    dilation, pad, more = (draw.draw(integers(*ends)) for ends in ((1, 3), (0, 1), (0, 1)))
    reach = [(n - 1) * s + dilation * (k - 1) for n, s, k in zip(sizes, strides, taps, strict=True)]
    assume(min(reach) >= 2 * pad)
    tensors = gathered(
        sizes, taps, strides, pad, 2, 3, batch=draw.draw(integers(1, 2)), dilation=dilation,
        more=more,
    )  # fmt: skip
    # Where every tap meets one output only there is no stride to be seen.
    assume(find_transposed(ComputeDAG.of(tensors)))
    assert_equal(tensors, seed)


@pytest.mark.parametrize(
    "tensors",
    [
        zeros_inserted((4, 5), (3, 5), (2, 2), 1),
        zeros_inserted((3, 2, 3), (3, 3, 2), (2, 3, 2), 0),
        by_residue(5, 3, 2, 1),
        by_residue(5, 7, 3, 1),
        depthwise(4, 5),
        grouped(5, 3, 2, 3, 2, 4),
        grouped(4, 5, 3, 2, 1, 3),
        gathered((5,), (3,), (4,), 0, dilation=2),
    ],
)
def test_it_computes_other_forms(tensors: list[Tensor]) -> None:
    assert_equal(tensors, 3)


def test_dilated_taps_and_groups_are_known() -> None:
    [dilated] = find_transposed(ComputeDAG.of(gathered((5,), (3,), (2,), 1, dilation=3)))
    assert [(w.stride, w.step, w.offset) for w in dilated.windows] == [(2, -3, 1)]
    [conv] = find_transposed(ComputeDAG.of(grouped(5, 3, 2, 3, 2, 4)))
    assert [(dim, axis.name) for dim, axis in conv.data_axes] == [(1, "g"), (1, "rc")]
    assert [axis.name for axis in conv.kept] == ["g"]


def test_missing_taps_are_skipped_outside_the_loops_that_sum_channels() -> None:
    """With the residues in loops of their own, a branch is asked once a tap."""
    dag = ComputeDAG.of(gathered((4,), (3,), (2,), 1, 8, 16))
    [conv] = find_transposed(dag)
    sampler = SketchSampler(Task(residues(dag, conv).dag, CPU, 1), DEFAULT)
    rng, found = np.random.default_rng(0), 0
    for sketch in sampler.draw(8, rng):
        table = sketch.sample(64, rng)
        for row in table[sketch.valid(table)][:4]:
            program = lower(sketch.resolve(row)).run
            branches = [s for s in walk_stmts(program.body) if isinstance(s, If)]
            found += bool(branches)
    assert found


def test_what_has_no_zeros_is_left_as_it_is() -> None:
    """By residues already and with as many taps for each: only transforms are offered."""
    made = list(Residues().rewrite(ComputeDAG.of(by_residue(64, 4, 2, 1, 64, 64)), CPU))
    assert made and all(d.error for d in made)
    ragged = list(Residues().rewrite(ComputeDAG.of(by_residue(64, 3, 2, 1, 64, 64)), CPU))
    assert [d.name for d in ragged if not d.error] == ["residues"]


def test_residues_lie_side_by_side_where_that_fills_vectors() -> None:
    few = ComputeDAG.of(gathered((8, 8), (3, 3), (2, 2), 1, 16, 3))
    many = ComputeDAG.of(gathered((8, 8), (3, 3), (2, 2), 1, 16, 64))
    even = ComputeDAG.of(gathered((8, 8), (4, 4), (2, 2), 1, 16, 64))
    assert [len(list(Subpixel().rewrite(dag, CPU))) for dag in (few, many, even)] == [1, 0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_its_sketches_compute_the_transposed_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(gathered((5, 4), (3, 4), (2, 2), 1, 5, 17))
    [conv] = find_transposed(dag)
    definition = residues(dag, conv, as_groups=bool(seed % 2))
    drawn = SketchSampler(Task(definition.dag, CPU, 2), DEFAULT).draw(6, rng)
    sketch = drawn[seed % len(drawn)]
    table = sketch.sample(64, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    data = inputs_of(state, rng)
    [want] = run_dag(dag, data)
    [got] = interpreted(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_transforms_that_save_less_than_skipping_are_not_offered() -> None:
    ragged = ComputeDAG.of(gathered((13, 13), (3, 3), (2, 2), 1, 64, 64))
    whole = ComputeDAG.of(gathered((13, 13), (4, 4), (2, 2), 1, 64, 64))
    assert not any(d.error for d in Residues().rewrite(ragged, CPU))
    assert any(d.error for d in Residues().rewrite(whole, CPU))
