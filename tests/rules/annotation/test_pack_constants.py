"""PackConstants: weights of one tiled reduction, and only those."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.annotation.pack_constants import PackConstants
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive
from tests.run_native import run_native


def packed(state: State) -> dict[str, tuple[str, ...]]:
    state = PackConstants().declare(Space(state), CPU).state
    return {stage.name: stage.packed for stage in state.stages if stage.packed}


def tiled(*tensors: object) -> State:
    [(state, _)] = derive(MultiLevelTiling(), list(tensors), "C")  # type: ignore[arg-type]
    return state


def test_a_constant_weight_is_packed_and_an_input_is_not() -> None:
    assert packed(tiled(*workloads.matmul(8, 8, 8, constant=True))) == {"C": ("B",)}
    assert packed(tiled(*workloads.matmul(8, 8, 8))) == {}


def test_not_for_an_untiled_reader() -> None:
    assert packed(State.initial(workloads.matmul(8, 8, 8, constant=True))) == {}


def test_what_is_made_of_constants_is_packed_too() -> None:
    a, w = placeholder((8, 8), name="A"), placeholder((8, 8), name="W", constant=True)
    u = compute((8, 8), lambda i, j: w[j, i] * 2.0, name="U")
    k = reduce_axis(8, name="k")
    c = compute((8, 8), lambda i, j: ap.sum(a[i, k] * u[k, j], axis=k), name="C")
    assert packed(tiled(a, w, c)) == {"C": ("U",)}


def test_a_weight_read_through_an_inlined_stage_is_packed(rng: np.random.Generator) -> None:
    a, w = placeholder((8, 12), name="A"), placeholder((12, 10), name="W", constant=True)
    k = reduce_axis(12, name="k")
    p = compute((8, 10, 12), lambda i, j, r: a[i, r] * w[r, j], name="P")
    c = compute((8, 10), lambda i, j: ap.sum(p[i, j, k], axis=k), name="C")
    state, _ = State.initial([a, w, c]).compute_inline("P").split("C", "j", (5,))
    state = PackConstants().declare(Space(state), CPU).state
    assert state.stage("C").packed == ("W",)
    data = {op.name: rng.standard_normal(op.shape).astype(np.float32) for op in (a, w)}
    [got], [want] = run_native(lower(state), data), run_dag(state.definition, data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ScheduleError, match='"W" is not a constant that "P" reads'):
        state.pack("P", "W")


def test_not_when_read_twice_or_at_an_index_that_no_layout_has() -> None:
    a, w = placeholder((8, 8), name="A"), placeholder((8, 8), name="W", constant=True)
    narrow, k = placeholder((8, 4), name="W", constant=True), reduce_axis(8, name="k")

    def twice(i: Expr, j: Expr) -> Expr:
        return ap.sum(a[i, k] * (w[k, j] + w[j, k]), axis=k)

    def halved(i: Expr, j: Expr) -> Expr:
        return ap.sum(a[i, k] * narrow[k, j // 2], axis=k)

    for weight, body in ((w, twice), (narrow, halved)):
        assert packed(tiled(a, weight, compute((8, 8), body, name="C"))) == {}


def test_taps_by_residue_are_packed_as_no_element_is_stored_twice() -> None:
    a, w = placeholder((9, 8), name="A"), placeholder((4, 8, 8), name="W", constant=True)
    t, k = reduce_axis(2, name="t"), reduce_axis(8, name="k")
    c = compute(
        (8, 2, 8),
        lambda i, r, j: ap.sum(
            a[i + (r + 1) // 2 - t + 1, k] * w[(r + 1) % 2 + t * 2, k, j],
            axis=(t, k),
        ),
        name="C",
    )  # fmt: skip
    assert packed(tiled(a, w, c)) == {"C": ("W",)}
