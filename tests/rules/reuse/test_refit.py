"""Schedules made for other shapes are refitted to programs of the new space."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.reuse.refit import nearest_rows, numbers_of
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests import workloads
from tests.run_native import run_native

Make = Callable[..., list[Tensor]]

SHAPES: dict[str, tuple[Make, tuple[int, ...], tuple[int, ...]]] = {
    "matmul": (workloads.matmul, (64, 48, 36), (35, 64, 22)),
    "rfactor": (workloads.matmul, (2, 4, 360), (3, 5, 210)),
    "primes": (workloads.matmul, (7, 13, 11), (31, 17, 5)),
    "chain": (workloads.double_matmul, (12,), (18,)),
    "conv": (workloads.conv2d_bn_relu, (1, 8, 9, 4, 6), (1, 5, 13, 3, 16)),
    "softmax": (workloads.softmax, (3, 12), (5, 35)),
    "winograd": (workloads.chosen_winograd, (1, 12, 9, 4, 6), (1, 8, 13, 6, 10)),
    "attention": (workloads.attention, (2, 12, 10, 4), (3, 9, 14, 6)),
}


def sampler(tensors: list[Tensor]) -> SketchSampler:
    return SketchSampler(Task(ComputeDAG.of(tensors), Target.parse("x86-64-v4"), 2))


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_refitted_is_a_valid_row_of_the_new_space(
    name: str, rng: np.random.Generator
) -> None:
    make, old_shape, new_shape = SHAPES[name]
    old, new = sampler(make(*old_shape)), sampler(make(*new_shape))
    asked = found = 0
    for sketch in old.draw(4, rng):
        table = sketch.sample(60, rng)
        for row in table[sketch.valid(table)][:1]:
            asked += 1
            fitted = list(new.refit(sketch.definition, sketch.resolve(row).history, 3, rng))
            found += bool(fitted)
            for other, rows in fitted:
                assert 0 < len(rows) <= 3 and other.definition == sketch.definition
                assert all(other.space.contains(r) for r in rows)
                lower(other.resolve(rows[0]))
    assert found >= asked / 2 > 0


def test_a_refitted_program_computes_the_new_definition(rng: np.random.Generator) -> None:
    old, tensors = sampler(workloads.matmul(64, 48, 36)), workloads.matmul(35, 17, 22)
    dag = ComputeDAG.of(tensors)
    new = SketchSampler(Task(dag, Target.host(), 1))
    data = {op.name: rng.standard_normal(op.shape, np.float32) for op in dag.args}
    [expected] = run_dag(dag, data, dtype=DType.FLOAT64)
    tried = 0
    for sketch in old.draw(3, rng):
        table = sketch.sample(60, rng)
        row = table[sketch.valid(table)][0]
        for other, rows in new.refit("direct", sketch.resolve(row).history, 1, rng):
            [found] = run_native(lower(other.resolve(rows[0])), data, 1)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
            tried += 1
    assert tried


def test_inner_tiles_and_annotations_are_kept_where_the_new_shape_has_them(
    rng: np.random.Generator,
) -> None:
    old, new = (sampler(workloads.matmul(n, 256, k)) for n, k in ((128, 64), (256, 512)))
    kept = total = 0
    for sketch in old.draw(3, rng):
        table = sketch.sample(200, rng)
        for row in table[sketch.valid(table)][:4]:
            history = sketch.resolve(row).history
            for other, rows in islice(new.refit("direct", history, 1, rng), 1):
                before, after = numbers_of(history), numbers_of(other.resolve(rows[0]).history)
                names = before.keys() & after.keys()
                kept += sum(before[name] == after[name] for name in names)
                total += len(names)
    assert total and kept / total > 0.95


def test_schedules_of_another_sketch_are_dropped(rng: np.random.Generator) -> None:
    sketch = sampler(workloads.softmax(3, 12)).draw_one(rng)
    history = sketch.resolve(sketch.sample(1, rng)[0]).history
    new = sampler(workloads.matmul(8, 8, 8))
    assert not list(new.refit("direct", history, 4, rng))
    assert not list(new.refit("unheard of", history, 4, rng))


def test_the_nearest_row_is_the_wanted_one_where_it_is_valid(rng: np.random.Generator) -> None:
    sketch = sampler(workloads.matmul(48, 64, 36)).draw_one(rng)
    table = sketch.sample(300, rng)
    valid = table[sketch.valid(table)][:10]
    assert len(valid)
    for row in valid:
        wanted = dict(zip(sketch.columns, row.tolist(), strict=True))
        rows = nearest_rows(sketch.space, wanted, lambda n: sketch.sample(n, rng), 2, rng)
        assert (rows[0] == row).all() and (rows[1:] != row).any()
