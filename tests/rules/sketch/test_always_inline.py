"""AlwaysInline: cheap stages on a CPU, all but reductions on CUDA."""

from __future__ import annotations

import pytest

from ansorpy.ir.expr import Function
from ansorpy.rules.sketch.always_inline import AlwaysInline
from tests import workloads
from tests.rules.asking import ALONE, CUDA, SKIP, ask, derive

CONV = workloads.conv2d_bn_relu(1, 6, 6, 4, 4)
SOFTMAX = workloads.softmax(4, 8)


def test_a_broadcast_addition_is_inlined() -> None:
    [(state, following)] = derive(AlwaysInline(), CONV, "bias_add")
    assert state.stage("bias_add").inlined
    assert following == state.stages[state.index("bias_add") - 1].name


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        ("pad", "a branch, an expensive call, or reads out of axis order"),
        ("conv", "a reduction would be repeated at every read"),
        ("relu", "an output must be stored"),
        ("data", "an input, there is nothing to inline"),
    ],
)
def test_what_is_not_inlined(stage: str, reason: str) -> None:
    verdict = ask(AlwaysInline(), CONV, stage)
    assert (verdict.answer, verdict.reason) == (SKIP, reason)


def test_exp_is_too_expensive_to_repeat_unless_told_otherwise() -> None:
    assert ask(AlwaysInline(), SOFTMAX, "exp").answer is SKIP
    assert ask(AlwaysInline(expensive=frozenset()), SOFTMAX, "exp").answer is ALONE
    tanh = AlwaysInline(expensive=frozenset({Function.TANH}))
    assert ask(tanh, SOFTMAX, "exp").answer is ALONE


def test_a_matrix_of_constants_is_inlined_though_it_branches() -> None:
    assert ask(AlwaysInline(), workloads.winograd(1, 4, 4, 2, 2), "B").answer is ALONE


def test_cuda_inlines_padding_and_exp() -> None:
    assert ask(AlwaysInline(), CONV, "pad", CUDA).answer is ALONE
    assert ask(AlwaysInline(), SOFTMAX, "exp", CUDA).answer is ALONE
    assert ask(AlwaysInline(), SOFTMAX, "sum", CUDA).answer is SKIP
