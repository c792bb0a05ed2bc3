"""SkipStage: it always applies and changes nothing."""

from __future__ import annotations

from ansorpy.rules.sketch.skip_stage import SkipStage
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import APPLY, ask, derive


def test_the_state_stays_and_the_next_stage_follows() -> None:
    start = State.initial(workloads.matmul(4, 4, 4))
    assert ask(SkipStage(), start, "C").answer is APPLY
    [(state, following)] = derive(SkipStage(), start, "C")
    assert state is start
    assert following == "B"
    [(_, following)] = derive(SkipStage(), start, "A")
    assert following == "", "a state past its first stage is a sketch"
