"""SpecialComputeLocation: Winograd's input tile stays out of the unrolled loops."""

from __future__ import annotations

from ansorpy.rules.sketch.simplify_const import SimplifyComputeWithConstTensor
from ansorpy.rules.sketch.special_compute_location import SpecialComputeLocation
from tests import workloads
from tests.rules.asking import ALONE, CUDA, SKIP, ask, derive

WINOGRAD = workloads.winograd(1, 8, 8, 4, 4)
RULE = SpecialComputeLocation()


def test_the_tile_is_computed_just_outside() -> None:
    [(unrolled, _)] = derive(SimplifyComputeWithConstTensor(), WINOGRAD, "data_pack", CUDA)
    assert ask(RULE, unrolled, "input_tile", CUDA).answer is ALONE
    [(state, following)] = derive(RULE, unrolled, "input_tile", CUDA)
    attach = state.stage("input_tile").attach
    assert attach is not None
    assert (attach.stage, attach.iter, following) == ("data_pack", "c.1", "pad")


def test_it_waits_for_the_consumer_to_be_unrolled() -> None:
    verdict = ask(RULE, WINOGRAD, "input_tile", CUDA)
    assert verdict.reason == '"data_pack" has no loop outside the unrolled ones'


def test_not_for_ordinary_consumers_or_matrices() -> None:
    assert ask(RULE, WINOGRAD, "pad", CUDA).answer is SKIP
    assert ask(RULE, WINOGRAD, "B", CUDA).reason == "it reads nothing"
    assert ask(RULE, WINOGRAD, "bgemm", CUDA).reason == "it would not be inlined anyway"
