"""CrossThreadReduction: threads share a reduction, alone or inside its consumer's loops."""

from __future__ import annotations

import pytest

from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.presets import ANSOR_CUDA, Preset
from ansorpy.rules.presets import CUDA as DEFAULT
from ansorpy.rules.sketch.add_cache_write import AddCacheWrite
from ansorpy.rules.sketch.always_inline import AlwaysInline
from ansorpy.rules.sketch.cross_thread_reduction import CrossThreadReduction
from benchmarks.ops.suite import cases
from tests import workloads
from tests.rules.asking import ALONE, APPLY, CUDA, SKIP, ask, derive, shows
from tests.rules.gpu_workloads import channel_means

RULE = CrossThreadReduction()


def test_alone_it_is_split_by_a_warp() -> None:
    [(state, _)] = derive(RULE, workloads.min_reduce(10, 64), "B", CUDA)
    shows(
        state,
        """
        for i in 0..10
          for k.0 in 0..2  # reduce
            for k.1 in 0..32  # threadIdx.x, reduce
              B[i] min= ...
        """,
    )


def test_softmax_becomes_one_kernel() -> None:
    [(summed, _)] = derive(RULE, workloads.softmax(4, 64), "sum", CUDA)
    [(inlined, _)] = derive(AlwaysInline(strict=False), summed, "exp", CUDA)
    [(state, following)] = derive(RULE, inlined, "max", CUDA)
    assert following == "A"
    for name in ("sum", "max"):
        attach = state.stage(name).attach
        assert attach is not None
        assert (attach.stage, attach.iter) == ("norm", "i0")
        assert state.stage(name).iters[-1].annotation.value == "threadIdx.x"
    assert [it.name for it in state.stage("norm").iters] == ["i0", "i1.0", "i1.1"]


def test_a_consumer_of_few_rows_may_have_blocks_of_its_own() -> None:
    rule = CrossThreadReduction(threads=(32, 64))
    for rows, hosts in ((107, [None, "norm"]), (108, ["norm"])):
        made = derive(rule, workloads.softmax(rows, 64), "sum", CUDA)
        attached = [state.stage("sum").attach for state, _ in made]
        assert [None if at is None else at.stage for at in attached] == hosts


def test_long_contiguous_rows_are_always_shared() -> None:
    rule = CrossThreadReduction(threads=(32, 64))
    for steps, answer in ((256, ALONE), (255, APPLY)):
        assert ask(rule, workloads.min_reduce(10, steps), "B", CUDA).answer is answer
        assert ask(RULE, workloads.min_reduce(10, steps), "B", CUDA).answer is APPLY
    assert ask(rule, workloads.matmul(8, 8, 1024), "C", CUDA).answer is APPLY
    means = channel_means(1, 20, 20, 7)
    assert ask(rule, means, "total", CUDA).answer is APPLY


@pytest.mark.parametrize(
    ("n", "k", "applies"), [(8, 1024, True), (8, 64, False), (64, 8192, False), (32, 1025, True)]
)
def test_a_matmul_needs_it_when_a_block_has_more_threads_than_it_elements(
    n: int, k: int, applies: bool
) -> None:
    verdict = ask(RULE, workloads.matmul(n, n, k), "C", CUDA)
    assert verdict.answer is (APPLY if applies else SKIP)


def test_other_reductions_need_it_beyond_a_warp() -> None:
    assert ask(RULE, workloads.min_reduce(10, 33), "B", CUDA).answer is APPLY
    assert ask(RULE, workloads.min_reduce(10, 32), "B", CUDA).answer is SKIP


def test_not_of_a_write_cache() -> None:
    [(cached, name)] = derive(AddCacheWrite(), workloads.matmul(8, 8, 1024), "C", CUDA)
    assert ask(RULE, cached, name, CUDA).reason == "it is a write cache"


def test_what_is_done_to_each_sum_is_done_in_its_kernel() -> None:
    wide = CrossThreadReduction(threads=(32, 64, 128))
    [(state, _)] = derive(wide, workloads.matrix_norm(4, 16, 16), "squares", CUDA)
    shows(
        state,
        """
        for b.0 in 0..4
          for b in 0..4
            for r@c@.0 in 0..?  # reduce
              for r@c@.1 in 0..?  # threadIdx.x, reduce
                squares[b] += ...
          for b.1 in 0..1  # threadIdx.x
            norm[b] = ...
        """,
    )


@pytest.mark.parametrize("preset", [ANSOR_CUDA, DEFAULT], ids=lambda preset: preset.name)
def test_a_norm_becomes_one_kernel(preset: Preset) -> None:
    (dag,) = [case.dag for case in cases() if case.name == "LN.128x768"]
    assert min(len(list(kernels(s))) for s in generate_sketches(dag, CUDA, preset)) == 1
