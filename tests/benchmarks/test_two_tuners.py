"""The benchmark of two tuners on one machine: its figures, and a run in small."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import two_tuners


def test_disturbance_is_told_from_the_median_alone() -> None:
    alone = [np.array([1.0, 1.0, 1.02]), np.array([2.0, 2.0, 2.0])]
    times = [np.array([1.0, 1.04, 1.04]), np.array([2.0, 2.2, 8.0])]
    off, worst, median = two_tuners.disturbance(alone, times)
    assert off == pytest.approx(2 / 6) and worst == 4.0 and median == pytest.approx(0.1)
    assert two_tuners.disturbance(alone, alone)[0] == 0


def test_it_runs_in_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    search = two_tuners.fastest
    monkeypatch.setattr(two_tuners, "fastest", lambda task, runner, *_: search(task, runner, 2, 8))
    two_tuners.main(["--size", "32", "--turns", "1", "--rounds", "1", "--threads", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("beside one that does not wait")]
    assert [line for line in lines if line.startswith("alone")]
