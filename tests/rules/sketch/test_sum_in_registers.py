"""SumInRegisters: a thread keeps its sum in a register until its result is stored."""

from __future__ import annotations

from ansorpy.rules.sketch.sum_in_registers import SumInRegisters
from tests import workloads
from tests.rules.asking import ALONE, SKIP, ask, derive, shows
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import average_pool

RULE = SumInRegisters()


def test_a_sum_is_copied_from_the_register_of_its_thread() -> None:
    [(state, following)] = derive(RULE, workloads.min_reduce(10, 16), "B", GPU)
    assert following == "A"
    shows(
        state,
        """
        for i in 0..10
          for i in 0..10
            for k in 0..16  # reduce
              B.local[i] min= ...
          B[i] = ...
        """,
    )


def test_what_follows_uses_it_at_once() -> None:
    [(state, following)] = derive(RULE, average_pool(1, 9, 9, 5, 3, 2), "total", GPU)
    assert following == "X"
    attach = state.stage("total").attach
    assert attach is not None
    assert (attach.stage, attach.iter) == ("mean", state.stage("mean").iters[-1].name)


def test_when_it_does_not_apply() -> None:
    pool = average_pool(1, 9, 9, 5, 3, 2)
    for tensors, stage, reason in (
        (pool, "mean", "it is not a reduction"),
        (workloads.zero_rank_reduce(128), "B", "it has no threads of its own"),
    ):
        verdict = ask(RULE, tensors, stage, GPU)
        assert (verdict.answer, verdict.reason) == (SKIP, reason)
    assert ask(RULE, pool, "total", GPU).answer is ALONE
    [(state, _)] = derive(RULE, pool, "total", GPU)
    assert ask(RULE, state, "total", GPU).reason == "it has no threads of its own"
