"""AnnotateUnroll: one limit per reduction, and the loops that a definition marks."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.annotation.unroll import AnnotateUnroll, origins
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive


def test_only_reductions_get_a_limit() -> None:
    space = AnnotateUnroll().declare(Space(State.initial(workloads.softmax(4, 8))), CPU)
    assert [(d.name, d.domain) for d in space.decisions] == [
        ("max.max_unroll", OneOf((0, 16, 64, 512))),
        ("sum.max_unroll", OneOf((0, 16, 64, 512))),
    ]


def test_marked_axes_are_unrolled_in_the_innermost_tile() -> None:
    a, b = placeholder((6, 8), name="A"), placeholder((8, 5), name="B")
    k = reduce_axis(8, name="k")
    c = compute(
        (6, 5), lambda i, j: ap.sum(a[i, k] * b[k, j], axis=k), name="C",
        attrs=Attrs(always_unroll_inner=("i", "k")),
    )  # fmt: skip
    [(tiled, _)] = derive(MultiLevelTiling(), [a, b, c], "C")
    state = AnnotateUnroll().declare(Space(tiled), CPU).state
    unrolled = [it.name for it in state.stage("C").iters if it.annotation.value == "unrolled"]
    assert unrolled == ["k.1", "i.3"], "further out i and j repeat"


def test_origins_look_through_splits_and_fusions() -> None:
    state, (outer, _) = State.initial(workloads.matmul(6, 8, 4)).split("C", "i", (2,))
    state, _ = state.split("C", "j", (4,))
    state = state.reorder("C", ["i.0", "j.0", "i.1", "j.1"])
    state, fused = state.fuse("C", [outer, "j.0"])
    assert origins(state.stage("C"), fused.name) == {"i", "j"}
    assert origins(state.stage("C"), "i.1") == {"i"}
