from __future__ import annotations

import numpy as np

from ansorpy.ir.builders import max as max_over
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.measure.check.wide_sums import wide_sums


def rows(dtype: DType = DType.FLOAT32) -> list[Tensor]:
    """Two sums of 12 terms, the second an output, and a maximum."""
    x = placeholder((3, 12), dtype, name="x")
    a, b, c = (reduce_axis(12, name=name) for name in "abc")
    total = compute((3,), lambda i: sum_over(x[i, a], axis=a), name="total")
    top = compute((3,), lambda i: max_over(x[i, b] - total[i], axis=b), name="top")
    rest = compute((3,), lambda i: sum_over(x[i, c] * top[i], axis=c), name="rest")
    return [x, rest]


def test_long_sums_are_added_in_float64_and_rounded_once() -> None:
    wide = wide_sums(ComputeDAG.of(rows()), terms=12)
    assert text(wide).splitlines() == [
        "x = placeholder float32[3, 12]",
        "total.wide[i] = sum(float64(x[i, a]) for a in 0..12)  # float64[3]",
        "total[i] = float32(total.wide[i])  # float32[3]",
        "top[i] = max(x[i, b] - total[i] for b in 0..12)  # float32[3]",
        "rest.wide[i] = sum(float64(x[i, c] * top[i]) for c in 0..12)  # float64[3]",
        "rest[i] = float32(rest.wide[i])  # float32[3]",
    ]


def test_the_value_is_the_same(rng: np.random.Generator) -> None:
    dag = ComputeDAG.of(rows())
    x = rng.standard_normal((3, 12), dtype=np.float32)
    [wide], [plain] = run_dag(wide_sums(dag, 2), {"x": x}), run_dag(dag, {"x": x})
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, plain, rtol=1e-5, atol=1e-5)


def test_other_definitions_stay_as_they_are() -> None:
    for dtype, terms in ((DType.FLOAT32, 13), (DType.FLOAT64, 2), (DType.INT32, 2)):
        dag = ComputeDAG.of(rows(dtype))
        assert wide_sums(dag, terms) is dag
