"""SplitReduction: blocks share the reduction of a product with few tiles."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.presets import CUDA
from ansorpy.rules.sketch.split_reduction import SplitReduction
from ansorpy.rules.tiling import factored_axes
from ansorpy.schedule.stage import SplitRelation
from tests import workloads
from tests.rules.asking import APPLY, SKIP, ask, derive
from tests.rules.asking import CUDA as GPU

RULE = SplitReduction()


def test_the_outer_part_of_the_longest_axis_is_factored_out() -> None:
    [(state, following)] = derive(RULE, workloads.matmul(64, 32, 2048), "C", GPU)
    assert following == "C.rf"
    assert [axis.extent for axis in state.stage("C.rf").compute.axes] == [2048, 64, 32]
    assert factored_axes(state, state.stage("C.rf")) == {"k.0"}
    assert ask(RULE, state, "C.rf", GPU).reason == "its reduction is shared out already"


def test_when_it_does_not_apply() -> None:
    for tensors, stage, reason in (
        (workloads.matmul(64, 64, 64), "C", "a short reduction"),
        (workloads.matmul(4096, 4096, 512), "C", "tiles enough for"),
        (workloads.min_reduce(4, 4096), "B", "it is no product"),
    ):
        verdict = ask(RULE, tensors, stage, GPU)
        assert verdict.answer is SKIP
        assert verdict.reason.startswith(reason)
    assert ask(RULE, workloads.matmul(64, 32, 2048), "C", GPU).answer is APPLY


def test_the_parts_are_blocks_of_a_tiled_product() -> None:
    sketches = generate_sketches(ComputeDAG.of(workloads.matmul(64, 32, 2048)), GPU, CUDA)
    split = [s for s in sketches if any(stage.name == "C.rf.local" for stage in s.stages)]
    assert len(split) == 1
    relations = split[0].stage("C.rf").relations
    splits = {r.parent: r.factors for r in relations if isinstance(r, SplitRelation)}
    assert splits["k.0"] == ((1,), (1,), (1,))
