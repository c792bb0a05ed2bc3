"""AddCacheWrite: a local accumulator for stages without a consumer to fuse with."""

from __future__ import annotations

from ansorpy.ir.loops import Scope
from ansorpy.rules.sketch.add_cache_write import AddCacheWrite
from tests import workloads
from tests.rules.asking import ALONE, APPLY, SKIP, ask, derive, shows


def test_it_computes_into_a_local_stage_and_looks_at_that_next() -> None:
    [(cached, following)] = derive(AddCacheWrite(), workloads.matmul(4, 8, 16), "C")
    assert following == "C.local"
    assert cached.stage(following).scope is Scope.LOCAL
    shows(
        cached,
        """
        for i in 0..4
          for j in 0..8
            for k in 0..16  # reduce
              C.local[i, j] += ...
        for i in 0..4
          for j in 0..8
            C[i, j] = ...
        """,
    )
    assert ask(AddCacheWrite(), cached, following).answer is SKIP, "or it would never end"


def test_cpu_also_tries_without_cuda_does_not() -> None:
    assert ask(AddCacheWrite(), workloads.matmul(), "C").answer is APPLY
    assert ask(AddCacheWrite(exclusive=True), workloads.matmul(), "C").answer is ALONE


def test_not_where_the_consumer_can_be_fused() -> None:
    verdict = ask(AddCacheWrite(), workloads.conv2d_bn_relu(1, 6, 6, 4, 4), "conv")
    assert verdict.answer is SKIP
    assert verdict.reason == 'it can be fused with its consumer "bias_add" instead'
    assert ask(AddCacheWrite(), workloads.min_reduce(), "B").answer is SKIP
