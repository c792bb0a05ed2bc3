"""MultiLevelTilingWithFusion: the consumer follows the producer's tiles and hosts it."""

from __future__ import annotations

from dataclasses import replace

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.sketch.add_cache_write import AddCacheWrite
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.rules.sketch.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansorpy.schedule.stage import SplitRelation
from tests import workloads
from tests.rules.asking import ALONE, APPLY, SKIP, ask, derive, shows

RULE = MultiLevelTilingWithFusion("SSR", levels=(1,))


def matmul_then(*extra: str) -> list[Tensor]:
    """``D = relu(C)`` with each of *extra* broadcast along rows or columns added."""
    a, b, c = workloads.matmul(6, 8, 4)
    sides = {"row": placeholder((8,), name="row"), "column": placeholder((6,), name="column")}

    def at(i: Expr, j: Expr) -> Expr:
        value = c[i, j]
        for name in extra:
            value = value + sides[name][j if name == "row" else i]
        return ap.maximum(value, 0.0)

    return [a, b, *(sides[name] for name in extra), compute((6, 8), at, name="D")]


def test_the_consumer_takes_over_the_tiles() -> None:
    [(fused, following)] = derive(RULE, matmul_then(), "C")
    assert following == "B"
    shows(
        fused,
        """
        for i.0 in 0..?
          for j.0 in 0..?
            for i.0 in 0..?
              for j.0 in 0..?
                for i.1 in 0..?
                  for j.1 in 0..?
                    for k in 0..4  # reduce
                      C[i, j] += ...
            for i.1 in 0..?
              for j.1 in 0..?
                D[i, j] = ...
        """,
    )


def test_one_sketch_a_level_and_none_inside_a_reduce_level() -> None:
    rule = MultiLevelTilingWithFusion("SSRSRS", levels=(1, 2, 3))
    hosts = [s.stage("C").attach for s, _ in derive(rule, matmul_then("row"), "C")]
    assert [host and host.iter for host in hosts] == ["j.0", "j.1"]


def test_the_followed_factors_are_the_producers_own_columns() -> None:
    [(fused, _)] = derive(MultiLevelTilingWithFusion(levels=(2,)), matmul_then(), "C")
    [i, _] = fused.stage("D").relations
    assert isinstance(i, SplitRelation)
    assert i.factors == (("C.i/1",), ("C.i/2", "C.i/3"))


def test_alone_for_a_write_cache_and_where_it_is_exclusive() -> None:
    assert ask(RULE, matmul_then(), "C").answer is APPLY
    assert ask(replace(RULE, exclusive=True), matmul_then(), "C").answer is ALONE
    [(cached, name)] = derive(AddCacheWrite(), workloads.matmul(), "C")
    assert ask(RULE, cached, name).answer is ALONE


def test_a_consumer_that_is_tiled_itself_cannot_follow() -> None:
    fused = matmul_then("row", "column")
    [(tiled, _)] = derive(MultiLevelTiling("SS"), fused, "D")
    verdict = ask(RULE, tiled, "C")
    assert verdict.answer is SKIP
    assert verdict.reason == "no single consumer reads it element by element"
    assert ask(AddCacheWrite(), tiled, "C").answer is APPLY


def test_a_transposing_consumer_does_not_match() -> None:
    a, b, c = workloads.matmul(6, 6, 4)
    turned = compute((6, 6), lambda i, j: c[j, i], name="D")
    assert ask(RULE, [a, b, turned], "C").answer is SKIP


def test_an_output_is_never_moved_into_its_reader() -> None:
    a, b, c = workloads.matmul(6, 8, 4)
    d = compute((6, 8), lambda i, j: c[i, j] + 1.0, name="D")
    assert ask(RULE, [a, b, c, d], "C").answer is SKIP


def test_a_consumer_that_reduces_does_not_match() -> None:
    a, b, c = workloads.matmul(6, 8, 4)
    k = reduce_axis(3, name="r")
    w = placeholder((3,), name="W")
    d = compute((6, 8), lambda i, j: ap.sum(c[i, j] * w[k], axis=k), name="D")
    assert ask(RULE, [a, b, w, d], "C").answer is SKIP
