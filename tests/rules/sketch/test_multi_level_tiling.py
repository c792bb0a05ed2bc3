"""MultiLevelTiling: one split per letter, in the order of the letters."""

from __future__ import annotations

import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as ap
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from tests import workloads
from tests.rules.asking import ALONE, SKIP, ask, derive, shows


def test_it_tiles_a_matmul() -> None:
    [(tiled, following)] = derive(MultiLevelTiling("SRS"), workloads.matmul(4, 8, 16), "C")
    assert following == "B"
    shows(
        tiled,
        """
        for i.0 in 0..?
          for j.0 in 0..?
            for k in 0..16  # reduce
              for i.1 in 0..?
                for j.1 in 0..?
                  C[i, j] += ...
        """,
    )


def test_axes_that_must_stay_whole_come_first_in_the_innermost_level() -> None:
    a, b = placeholder((4, 6, 8), name="A"), placeholder((8, 5), name="B")
    k = reduce_axis(8, name="k")
    c = compute(
        (4, 6, 5), lambda i, w, j: ap.sum(a[i, w, k] * b[k, j], axis=k), name="C",
        attrs=Attrs(no_split_at_inner=("w", "k")),
    )  # fmt: skip
    [(tiled, _)] = derive(MultiLevelTiling("SSRSRS"), [a, b, c], "C")
    names = [it.name for it in tiled.stage("C").iters]
    assert names == ["i.0", "j.0", "i.1", "j.1", "i.2", "j.2", "k", "w", "i.3", "j.3"]


def test_the_innermost_factor_has_its_cap() -> None:
    rule = MultiLevelTiling("SSR", max_innermost=8)
    [(tiled, _)] = derive(rule, workloads.matmul(64, 48, 4), "C")
    assert {d.domain.rows.max() for d in tiled.decisions} == {8}


def test_there_must_be_a_letter_for_every_kind_of_loop() -> None:
    with pytest.raises(ScheduleError, match='"SS" has no tile level for a reduce loop'):
        derive(MultiLevelTiling("SS"), workloads.matmul(4, 4, 4), "C")


def test_it_leaves_stages_alone_that_reuse_nothing() -> None:
    verdict = ask(MultiLevelTiling(), workloads.max_pool2d(1, 6, 6, 4), "pool")
    assert (verdict.answer, verdict.reason) == (SKIP, "its inputs are not re-read enough to tile")
    assert ask(MultiLevelTiling(), workloads.matmul(), "A").answer is SKIP
    assert ask(MultiLevelTiling(), workloads.matmul(), "C").answer is ALONE
