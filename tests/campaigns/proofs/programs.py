"""Random programs to prove, and small definitions of which the interpreter runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import Preset
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.ops.families.conv1d import Conv1d
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.elementwise import Softmax
from benchmarks.ops.families.matmul import Matmul
from benchmarks.ops.families.norms import LayerNorm, MatrixNorm
from benchmarks.ops.families.transposed import TransposedConv2d

__all__ = ["Drawn", "drawn", "small_definitions"]

_ROWS, _TRIED = 32, 4
"""Rows drawn per placed sketch, and valid ones to try until one can be lowered."""


class Drawn(NamedTuple):
    """A schedule and its programs."""

    state: State
    lowered: Lowered


def drawn(
    dag: ComputeDAG, target: Target, preset: Preset | None, rng: np.random.Generator, count: int
) -> Iterator[Drawn]:
    """A random program of each of *count* placed sketches of *dag*."""
    sampler = SketchSampler(Task(dag, target, 2), preset)
    for sketch in sampler.draw(count, rng):
        table = sketch.sample(_ROWS, rng)
        for row in table[sketch.valid(table)][:_TRIED]:
            try:
                state = sketch.resolve(row)
                found = Drawn(state, lower(state))
            except ScheduleError:
                continue
            yield found
            break


@cache
def small_definitions(*, gpu: bool) -> tuple[ComputeDAG, ...]:
    """Operators that the interpreter runs in milliseconds; for a GPU, also half-precision ones."""
    cases = (
        Matmul("small", 19, 23, 13), Conv1d("small", (17,), 3, 5, 3, 2, 1),
        Conv2d("small", (7, 7), 5, 6, 3, 1, 1), Conv2d("small", (8, 8), 4, 7, 3, 2, 1),
        TransposedConv2d("small", (4, 4), 3, 5, 4, 2, 1), Softmax("small", (3, 11)),
        LayerNorm("small", 5, 21), MatrixNorm("small", 9, 14),
    )  # fmt: skip
    found = [case.dag for case in cases]
    if gpu:
        sizes = ((37, 29, 33), (16, 40, 65), (64, 64, 96))
        found += [ComputeDAG.of(_half_matmul(*size)) for size in sizes]
    return tuple(found)


def _half_matmul(n: int, m: int, k: int) -> Sequence[Tensor]:
    """A product for tensor cores."""
    x, y = placeholder((n, k), "float16", name="A"), placeholder((k, m), "float16", name="B")
    r = reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return b.sum(x[i, r].astype("float32") * y[r, j].astype("float32"), axis=r)

    return [x, y, compute((n, m), product, name="C")]
