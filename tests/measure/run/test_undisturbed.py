"""What met a disturbance is measured again, while that takes a small share of the time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from ansorpy.measure.run.undisturbed import CREDIT_S, Undisturbed


class Machine:
    """Disturbed at the probes whose numbers are given; each measurement takes a second."""

    def __init__(self, disturbed: Callable[[int], bool]) -> None:
        self.disturbed, self.probes, self.seconds = disturbed, 0, 0.0

    def is_disturbed(self) -> bool:
        self.probes += 1
        return self.disturbed(self.probes - 1)

    def measured(self) -> float:
        self.seconds += 1.0
        return self.seconds


def on(disturbed: Callable[[int], bool]) -> tuple[Machine, Undisturbed]:
    machine = Machine(disturbed)
    return machine, Undisturbed(machine.is_disturbed, clock=lambda: machine.seconds)


QUIET = 2 * 20  # probes of twenty measurements


@pytest.mark.parametrize(
    ("probes", "want"), [((), 21), ((0,), 22), ((1,), 23), ((0, 1, 2), 24), ((2, 3), 21)]
)
def test_it_is_measured_until_the_machine_is_calm(probes: tuple[int, ...], want: int) -> None:
    machine, undisturbed = on(lambda n: n - QUIET in probes)
    for number in range(20):
        assert undisturbed(machine.measured) == number + 1
    assert undisturbed(machine.measured) == want
    assert undisturbed.repeated == want - 21


def test_repeats_end_on_a_machine_that_is_always_busy() -> None:
    machine, undisturbed = on(lambda n: True)
    for _ in range(400):
        undisturbed(machine.measured)
    assert 90 <= undisturbed.repeated <= 100


def test_what_was_saved_is_limited() -> None:
    machine, undisturbed = on(lambda n: n >= 2000)
    for _ in range(1000):
        undisturbed(machine.measured)
    assert undisturbed.repeated == 0
    undisturbed(machine.measured)
    assert undisturbed.repeated == CREDIT_S


def test_the_result_is_that_of_the_last_measurement() -> None:
    numbers = count()
    undisturbed = Undisturbed(lambda: True)
    assert undisturbed(lambda: next(numbers)) == undisturbed.repeated
