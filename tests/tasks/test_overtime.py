"""Which tasks that stopped improving get what time is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansorpy.tasks.overtime import NEAR, WORTH, revived
from ansorpy.tasks.standing import Standing
from tests.tasks.standings import INF, standing


def resting(best_s: float, least_s: float, slope: float = 1.0) -> Standing:
    return replace(standing(best_s, alive=False, least_s=least_s, slope=slope), resting=True)


def test_a_task_far_from_its_roofline_is_alive_again() -> None:
    far, near = resting(2.0, 1.0), resting(0.99 * NEAR, 1.0)
    assert [task.alive for task in revived([far, near])] == [True, False]


@pytest.mark.parametrize(("slope", "alive"), [(0.0, False), (0.4, False), (1.6, True)])
def test_its_gain_must_be_seen_in_the_whole(slope: float, alive: bool) -> None:
    small = resting(2.0, 1.0, slope)  # may save half of what it takes
    other = standing(100 * 1.0, alive=False, slope=WORTH * 100)
    assert revived([small, other])[0].alive == alive


def test_others_stay_as_they_are() -> None:
    dead, alive, unknown = standing(2.0, alive=False), standing(2.0), resting(INF, 0.0, 0.0)
    assert revived([dead, alive, unknown]) == [dead, alive, unknown]
