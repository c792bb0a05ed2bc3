"""How errors of sums grow with their length, for schedules that a search may draw.

A case is a reduction, a type and a length.  Errors are in units of rounding of the sum of the
terms' magnitudes, for which a sum of n terms in any order has the bound n - 1 (Higham 2002, section
4.2); a random walk of rounding errors grows like the square root of n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.check.compare import extra_error, tolerance
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests import workloads
from tests.campaigns.campaign import Campaign, Tally
from tests.properties.random_elements import random_values
from tests.run_native import run_native

__all__ = ["REDUCTIONS"]

Array = NDArray[Any]

_TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64)
_POWERS = (0, 4, 8, 12, 16, 20)
_CHANNELS = (4, 16, 64)
_PROGRAMS = 6


def _sum(n: int, dtype: DType) -> Tensor:
    x, k = placeholder((n,), dtype, name="x"), reduce_axis(n, name="k")
    return compute((), lambda: b.sum(b.widened(x[k]), axis=k), name="total")


def _mean(n: int, dtype: DType) -> Tensor:
    total = _sum(n, dtype)
    return compute((), lambda: total[()] * (1 / n), name="mean")


def _dot(n: int, dtype: DType) -> Tensor:
    x, y = placeholder((n,), dtype, name="x"), placeholder((n,), dtype, name="y")
    k = reduce_axis(n, name="k")
    return compute((), lambda: b.sum(b.widened(x[k]) * b.widened(y[k]), axis=k), name="product")


_KINDS: dict[str, tuple[Callable[[int, DType], Tensor], int]] = {
    "sum": (_sum, 0), "mean": (_mean, 2), "dot product": (_dot, 1),
}  # fmt: skip
"""The definition, and the roundings of an element besides those of additions."""
_SUMS = [(kind, dtype, k) for k in _POWERS for kind in _KINDS for dtype in _TYPES]


def _case(rng: np.random.Generator, number: int) -> Tally:
    if number >= len(_SUMS):
        return _convolution(_CHANNELS[number - len(_SUMS)], rng)
    kind, dtype, power = _SUMS[number]
    (define, more), n = _KINDS[kind], 1 << power
    output, seen = define(n, dtype), Tally()
    dag = ComputeDAG([output])
    data = random_values(dag, rng)
    if kind == "mean":  # of numbers of one sign, whose rounding errors cancel less
        data = {name: np.abs(values) for name, values in data.items()}
    terms = np.prod([a.astype(np.float64) for a in data.values()], axis=0)
    exact, size = math.fsum(terms), math.fsum(np.abs(terms))
    if kind == "mean":
        exact, size = exact / n, size / n
    unit = output.dtype.epsilon / 2
    for _, found in _computed(dag, data, "default", rng):
        error = abs(float(found) - exact) / (unit * size)
        bound = n - 1 + more
        assert error <= bound * (1 + n * unit), f"{error:.4g} units, the bound is {bound}"
        seen.note(f"{kind}, {dtype.value}; 2^{power}", error, f"the bound is {bound}")
        seen.kinds[f"{kind} of {dtype.value}"] += 1
    return seen


def _convolution(channels: int, rng: np.random.Generator) -> Tally:
    """A 3 x 3 convolution, whose definitions by Winograd are for default precision only."""
    seen, dag = Tally(), ComputeDAG([_image(channels)])
    data = random_values(dag, rng)
    exact = run_dag(dag, data, dtype=DType.FLOAT64)[0]
    for precision in ("strict", "default"):
        for definition, found in _computed(dag, data, precision, rng):
            error = float(np.abs(found - exact).max() / np.abs(exact).max())
            assert error <= tolerance(dag, dag.outputs[0]) + extra_error(dag, definition)
            name = f"3x3 convolution, {precision} precision; {channels} channels"
            seen.note(name, error / (DType.FLOAT32.epsilon / 2), "in units of the largest output")
            seen.kinds[f"convolution, {precision}"] += 1
    return seen


def _image(channels: int) -> Tensor:
    return workloads.conv2d_bn_relu(1, 16, 16, channels, 16)[-1]


def _computed(
    dag: ComputeDAG, data: dict[str, Array], precision: Precision, rng: np.random.Generator
) -> Iterator[tuple[ComputeDAG, Array]]:
    """The definitions of random programs and their first outputs."""
    sampler = SketchSampler(Task(dag, Target.host(), 2, precision))
    for _ in range(_PROGRAMS):
        sketch = sampler.draw_one(rng)
        table = sketch.sample(32, rng)
        for row in table[sketch.valid(table)][:1]:
            state = sketch.resolve(row)
            yield state.definition, run_native(lower(state), data)[0]


REDUCTIONS = Campaign(
    "how the errors of sums grow with their length",
    _case,
    size=len(_SUMS) + len(_CHANNELS),
)
