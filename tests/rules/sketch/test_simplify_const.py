"""SimplifyComputeWithConstTensor: unrolled constant indices inside a two-level tile."""

from __future__ import annotations

from ansorpy.rules.sketch.simplify_const import SimplifyComputeWithConstTensor
from tests import workloads
from tests.rules.asking import ALONE, SKIP, ask, derive

WINOGRAD = workloads.winograd(1, 8, 8, 4, 4)


def test_marked_axes_are_unrolled_innermost_and_the_others_tiled() -> None:
    [(state, following)] = derive(SimplifyComputeWithConstTensor(), WINOGRAD, "data_pack")
    iters = state.stage("data_pack").iters
    assert [it.name for it in iters] == ["p.0", "c.0", "p.1", "c.1", "e", "v", "r1", "r2"]
    assert [it.annotation.value for it in iters[4:]] == ["unrolled"] * 4
    assert following == "B"


def test_only_where_the_definition_asks_for_it() -> None:
    rule = SimplifyComputeWithConstTensor()
    assert ask(rule, WINOGRAD, "inverse").answer is ALONE
    verdict = ask(rule, WINOGRAD, "bgemm")
    assert (verdict.answer, verdict.reason) == (SKIP, "no axes are marked unroll_axes")
