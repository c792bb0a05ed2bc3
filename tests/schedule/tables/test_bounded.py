"""Interval arithmetic on sizes: results of all operations lie within their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ansorpy.ir.symbols import SizeOp
from ansorpy.schedule.tables.bounded import bounded
from ansorpy.schedule.tables.formulas import Formula, Formulas
from ansorpy.schedule.tables.size import Size, above, product, size_gcd, size_max, size_min

_APPLIED: Mapping[SizeOp, Callable[[Any, Any], Any]] = {
    SizeOp.ADD: lambda a, b: a + b,
    SizeOp.SUB: lambda a, b: a - b,
    SizeOp.MUL: lambda a, b: a * b,
    SizeOp.FLOORDIV: lambda a, b: a // b,
    SizeOp.MIN: np.minimum,
    SizeOp.MAX: np.maximum,
    SizeOp.GCD: np.gcd,
    SizeOp.ABOVE: lambda a, b: (a > b) * 1,
}


@pytest.mark.parametrize("op", SizeOp)
def test_results_lie_within_their_bounds(op: SizeOp, rng: np.random.Generator) -> None:
    least = 0 if op is SizeOp.GCD else -9
    ends = np.sort(rng.integers(least, 12, (2, 400, 2)), axis=2)
    ends[:, :40, 1] = ends[:, :40, 0]  # some are points
    if op is SizeOp.FLOORDIV:
        ends[1] = np.sort(rng.integers(0, 12, (400, 2)), axis=1)
    (a, b) = ((e[:, 0] * 1.0, e[:, 1] * 1.0) for e in ends)
    low, high = bounded(op, a, b)
    for _ in range(30):
        x, y = (rng.integers(e[:, 0], e[:, 1] + 1) for e in ends)
        defined = (y != 0) if op is SizeOp.FLOORDIV else np.ones(len(x), dtype=bool)
        found = _APPLIED[op](x[defined], y[defined])
        assert (low[defined] <= found).all() and (found <= high[defined]).all()
    points = (a[0] == a[1]) & (b[0] == b[1]) & ((b[0] > 0) | (op is not SizeOp.FLOORDIV))
    assert points.any() and (low[points] == high[points]).all()


def test_an_unbounded_factor_times_zero_is_zero() -> None:
    one = np.ones(1)
    with np.errstate(invalid="ignore"):
        found = bounded(SizeOp.MUL, (0 * one, 0 * one), (one, np.inf * one))
    assert found == (0.0, 0.0)


def test_tapes_bound_what_they_compute(rng: np.random.Generator) -> None:
    formulas = Formulas(("x", "y", "z"), {})
    x, y, z = formulas.values.values()
    sizes: list[Size] = [
        size_min(product((x, y)), 60) // size_max(z, 1),
        above(x - x // y * y, 0) + size_gcd(x, z),
    ]
    wanted = [size for size in sizes if isinstance(size, Formula)]
    tape = formulas.program(wanted)
    ends = np.sort(rng.integers(1, 20, (2, 200, 3)), axis=0)
    bounds = tape.bounds(ends[0], ends[1])
    for _ in range(20):
        values = tape.run(rng.integers(ends[0], ends[1] + 1))
        for size in wanted:
            low, high = bounds[size]
            assert (low <= values[size].values).all() and (values[size].values <= high).all()
