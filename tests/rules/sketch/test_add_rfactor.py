"""AddRfactor: reductions with too little space around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansorpy.rules.sketch.add_cache_write import AddCacheWrite
from ansorpy.rules.sketch.add_rfactor import AddRfactor
from tests import workloads
from tests.rules.asking import APPLY, CPU, SKIP, ask, derive, shows


def test_the_outer_or_the_inner_part_becomes_space() -> None:
    (outer, first), (inner, second) = derive(AddRfactor(), workloads.min_reduce(10, 64), "B")
    assert (first, second) == ("A", "A")
    shows(
        outer,
        """
        for i in 0..10
          for k.0 in 0..64
            for k.1 in 0..1  # reduce
              B.rf[i, k.0] min= ...
        for i in 0..10
          for k.0.v in 0..64  # reduce
            B[i] min= ...
        """,
    )
    assert [it.name for it in inner.stage("B.rf").iters] == ["i", "k.0", "k.1"]
    assert inner.stage("B.rf").compute.shape == (10, 1)


def test_several_reduce_loops_are_fused_first() -> None:
    made = derive(AddRfactor(), workloads.max_pool2d(1, 4, 4, 1), "pool", replace(CPU, cores=2))
    assert [s.stage("pool").compute.reduce_axes[0].name for s, _ in made] == [
        "ry@rx@.0.v", "ry@rx@.1.v",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "m", "k", "cores", "applies"),
    [
        (8, 8, 512, 4, True),
        (8, 8, 512, 3, False),  # 64 elements are more than 16 jobs on each of 3 cores
        (8, 8, 63, 4, False),  # fewer to reduce than to compute
        (8, 8, 64, 4, True),
        (512, 512, 512, 4, False),
    ],
)
def test_a_matmul_needs_it_when_it_is_deep_and_small(
    n: int, m: int, k: int, cores: int, applies: bool
) -> None:
    verdict = ask(AddRfactor(), workloads.matmul(n, m, k), "C", replace(CPU, cores=cores))
    assert verdict.answer is (APPLY if applies else SKIP)


def test_other_reductions_need_it_when_longer_than_there_are_cores() -> None:
    assert ask(AddRfactor(), workloads.min_reduce(10, 5), "B").answer is APPLY
    assert ask(AddRfactor(), workloads.min_reduce(10, 4), "B").answer is SKIP
    assert ask(AddRfactor(), workloads.matmul(), "A").answer is SKIP


def test_not_of_a_write_cache() -> None:
    [(cached, name)] = derive(AddCacheWrite(), workloads.matmul(8, 8, 512), "C")
    verdict = ask(AddRfactor(), cached, name)
    assert (verdict.answer, verdict.reason) == (
        SKIP, "it is a write cache; the uncached form is tried as well",
    )  # fmt: skip


def test_only_when_short_spares_stages_whose_space_fills_the_machine() -> None:
    two = replace(CPU, cores=2)
    pool, rule = workloads.max_pool2d(1, 8, 8, 4), AddRfactor(only_when_short=True)
    assert ask(AddRfactor(), pool, "pool", two).answer is APPLY
    assert ask(rule, pool, "pool", two).reason == "its space loops fill all cores and vectors"
    assert ask(rule, workloads.max_pool2d(1, 2, 2, 1), "pool", two).answer is APPLY
    rows = ask(rule, workloads.min_reduce(4096, 64), "B", two)
    assert rows.reason == "its rows fill all cores and its reduction the vectors"
    assert ask(rule, workloads.min_reduce(3, 64), "B", two).answer is APPLY
    assert ask(rule, workloads.min_reduce(3, 64), "B", replace(CPU, cores=1)).answer is SKIP
    assert ask(rule, workloads.matmul(4, 8, 512), "C", two).answer is APPLY


def test_what_sums_in_lanes_shares_its_outermost_loop_only() -> None:
    rule = AddRfactor(only_when_short=True)
    [(state, _)] = derive(rule, workloads.matrix_norm(1, 32, 16), "squares")
    shows(
        state,
        """
        for b in 0..1
          for r.0 in 0..32
            for r.1 in 0..1  # reduce
              for c in 0..16  # reduce
                squares.rf[b, r.0] += ...
        for b in 0..1
          for r.0.v in 0..32  # reduce
            squares[b] += ...
        for b in 0..1
          norm[b] = ...
        """,
    )
