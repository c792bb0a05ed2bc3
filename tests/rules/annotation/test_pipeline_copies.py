"""PipelineCopies: the loops around shared tiles are fused; the pipeline's depth is open."""

from __future__ import annotations

from ansorpy.rules.annotation.pipeline_copies import PipelineCopies
from ansorpy.target import Target
from tests import workloads
from tests.rules.algorithms.convolutions import convolution
from tests.rules.gpu_spaces import after


def test_the_loops_around_a_tile_become_one_pipeline() -> None:
    space = after(PipelineCopies((1, 2, 5)), convolution((14, 14), (3, 3), 32, 32, pad=1))
    stage = space.state.stage("conv")
    assert stage.pipeline is not None
    assert stage.pipeline[0] == "k0.0@k1.0@rc.0@"
    depth = next(d for d in space.decisions if d.name == "conv.pipeline")
    assert depth.domain.rows[:, 0].tolist() == [1, 2, 5]
    assert {s.name for s in space.state.attached("conv")} == {"pad.shared", "W.shared"}
    assert {s.attach.iter for s in space.state.attached("conv") if s.attach} == {stage.pipeline[0]}


def test_an_older_chip_fills_each_tile_where_it_is_read() -> None:
    state = after(PipelineCopies(), workloads.matmul(64, 64, 64), Target.parse("sm_75")).state
    assert state.stage("C.local").pipeline is None


def test_what_has_no_shared_tile_has_no_pipeline() -> None:
    state = after(PipelineCopies(), workloads.max_pool2d(1, 8, 8, 4)).state
    assert all(stage.pipeline is None for stage in state.stages)
