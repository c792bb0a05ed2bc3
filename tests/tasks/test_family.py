"""The scheduler of families."""

from __future__ import annotations

import numpy as np

from ansorpy.tasks.scheduler import Round
from ansorpy.tasks.schedulers.family import Family
from tests.tasks.progress import INF, progress
from tests.tasks.simulated import curve, visits


def test_one_mate_gets_sixteen_trials_after_sixty_four() -> None:
    curves = [curve(g, 40.0) for g in (1e-2, 1e-3, 5e-3, 2e-3, 8e-3)]
    families = ["conv", "conv", "dense", "conv", "dense"]
    found = visits(Family(), curves, [1.0] * 5, 45, size=64, families=families)
    assert {at for at, _ in found[:5]} == {0, 1, 2, 3, 4}
    for (main, usual), (mate, short) in zip(found[5::2], found[6::2], strict=True):
        assert (usual, short) == (64, 16)
        assert mate != main and families[mate] == families[main]


def test_the_mate_is_the_steepest_that_has_a_program() -> None:
    def mate(alive: bool = True, cost: float = 1.0) -> Round | None:
        tasks = [
            progress(9.0, class_key="one"), progress(2.0, class_key="one"),
            progress(4.0, class_key="one", alive=alive, cost=cost), progress(8.0, class_key="two"),
        ]  # fmt: skip
        scheduler, rng = Family(), np.random.default_rng(0)
        assert scheduler.next(tasks, rng) == Round(0)
        return scheduler.next(tasks, rng)

    assert mate() == Round(2, 0.25)
    assert mate(alive=False) == mate(cost=4.0) == Round(1, 0.25)


def test_a_task_alone_or_without_a_program_has_no_mate_round() -> None:
    rng = np.random.default_rng(0)
    alone = [progress(9.0, class_key="one"), progress(2.0, class_key="two"), progress(2.0)]
    failed = [progress(INF, class_key="one"), progress(2.0, class_key="one")]
    for tasks in (alone, failed):
        scheduler = Family()
        assert [scheduler.next(tasks, rng) for _ in range(3)] == [Round(0)] * 3
