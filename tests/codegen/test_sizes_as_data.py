"""Sizes that are stored as data, alone or in arithmetic, in machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import dim
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import compute
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native

N = Dim("n", 1, 40)
FORMS: dict[str, Callable[[Expr], Expr]] = {"alone": lambda n: n, "sum": lambda n: n * 3 - 1}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [(), (1,), (5,)])
def test_a_size_is_stored(form: str, rows: tuple[int, ...]) -> None:
    size = as_expr(dim("n", 1, 40), DType.INT64)
    dag = ComputeDAG([compute(rows, lambda *_: FORMS[form](size), name="y")], [])
    [found] = run_native(lower(State.initial(dag)), {}, sizes={N: 7})
    np.testing.assert_array_equal(found, np.full(rows, {"alone": 7, "sum": 20}[form]))
