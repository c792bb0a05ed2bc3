"""The remaining time goes to tasks that stopped improving but are far from their roofline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansorpy.tasks.overtime import NEAR, WORTH, revived
from ansorpy.tasks.progress import TaskProgress
from tests.tasks.progress import INF, progress


def resting(best_s: float, least_s: float, gradient: float = 1.0) -> TaskProgress:
    return replace(progress(best_s, alive=False, least_s=least_s, gradient=gradient), resting=True)


def test_a_task_far_from_its_roofline_is_alive_again() -> None:
    far, near = resting(2.0, 1.0), resting(0.99 * NEAR, 1.0)
    assert [task.alive for task in revived([far, near])] == [True, False]


@pytest.mark.parametrize(("gradient", "alive"), [(0.0, False), (0.4, False), (1.6, True)])
def test_its_gain_must_be_seen_in_the_whole(gradient: float, alive: bool) -> None:
    small = resting(2.0, 1.0, gradient)  # may save half of what it takes
    other = progress(100 * 1.0, alive=False, gradient=WORTH * 100)
    assert revived([small, other])[0].alive == alive


def test_others_stay_as_they_are() -> None:
    dead, alive, unknown = progress(2.0, alive=False), progress(2.0), resting(INF, 0.0, 0.0)
    assert revived([dead, alive, unknown]) == [dead, alive, unknown]
