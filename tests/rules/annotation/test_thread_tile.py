"""ThreadTile: the loops over a thread's registers are unrolled or vectorised."""

from __future__ import annotations

from ansorpy.ir.loops import ForKind
from ansorpy.rules.annotation.thread_tile import ThreadTile
from tests import workloads
from tests.rules.gpu_spaces import after


def test_the_tile_of_a_thread_and_its_result_are_unrolled() -> None:
    state = after(ThreadTile(), workloads.matmul(64, 64, 64)).state
    unrolled = {
        stage.name: [it.name for it in stage.iters if it.annotation is ForKind.UNROLLED]
        for stage in state.stages
    }
    assert unrolled == {
        "A": [], "A.shared": [], "B": [], "B.shared": [], "C.local": ["i.3", "j.3"],
        "C": ["i.3"],
    }  # fmt: skip
    results = state.stage("C").vectorize
    assert results is not None
    assert results.iters == ("j.3",)


def test_untiled_kernels_are_left_alone() -> None:
    state = after(ThreadTile(), workloads.max_pool2d(1, 8, 8, 4)).state
    kinds = {it.annotation for stage in state.stages for it in stage.iters}
    assert ForKind.UNROLLED not in kinds
