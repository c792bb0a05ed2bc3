"""Reasons why tasks get more or fewer trials than planned."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.task_trials import TaskTrials, trials_of_tasks
from tests.tasks.progress import INF, progress


def task(
    trials: int, share: float, best_s: float = 1.0, *,
    least_s: float = 0.5, gradient: float = 1.0, earlier: int = 0,
) -> TaskProgress:  # fmt: skip
    return progress(
        best_s, trials_after=[trials], share=share, least_s=least_s, gradient=gradient,
        earlier=earlier,
    )  # fmt: skip


def reasons(*tasks: TaskProgress, ended: Sequence[str] = ()) -> list[str]:
    found = trials_of_tasks(tasks, ended or [""] * len(tasks))
    return [trials.why for trials in found]


def test_what_goes_as_planned_needs_no_reason() -> None:
    tasks = [task(60, 0.5), task(60, 0.5, earlier=20), task(2, 0.0)]
    found = trials_of_tasks(tasks, ["", "", ""])
    assert found == [TaskTrials(51, 60), TaskTrials(51, 40), TaskTrials(0, 2)]


def test_tasks_that_got_less() -> None:
    rest = task(180, 0.5)
    assert reasons(rest, task(20, 0.5))[1] == "other tasks promised larger gains"
    assert reasons(rest, task(20, 0.5), ended=("", "stopped improving"))[1] == "stopped improving"
    assert reasons(rest, task(90, 0.5, earlier=70))[1] == "had 70 trials before"
    assert reasons(rest, task(20, 0.5, least_s=0.9))[1] == "within 10% of its roofline"
    assert (
        reasons(rest, task(20, 0.5, 0.25, least_s=0.1))[1]
        == "takes 20% of the time, planned for 50%"
    )
    assert reasons(rest, task(20, 0.5, gradient=0.0))[1] == "the objective no longer depends on it"
    assert reasons(task(9, 0.5, INF), task(91, 0.5))[0] == "takes 0.0% of the time, planned for 50%"


def test_tasks_that_got_more() -> None:
    light, heavy = task(50, 0.9), task(50, 0.1)
    assert reasons(light, heavy)[1] == "takes 50% of the time, planned for 10%"
    light, far = task(50, 0.9, 9.0), task(50, 0.1, least_s=0.25)
    assert reasons(light, far)[1] == "75% of its time is above its roofline"
