"""Races on a small grid: what is counted, and the exact figures of uniform drawing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.race.contestant import Contestant
from benchmarks.race.replay import Race, expected, replayed, run, trials_to
from benchmarks.spaces.__main__ import main
from benchmarks.spaces.grid import Grid, write_grid
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul


@cache
def grid() -> Grid:
    return grid_of(matmul(40, 36, 60), points=80)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spaces").mkdir()
    write_grid(grid(), tmp_path / "spaces" / "small.npz")
    return tmp_path / "spaces"


def test_trials_to_a_share_of_the_best() -> None:
    trace = [np.inf, 2.0, 1.05, 1.0]
    assert [trials_to(trace, share) for share in (0.4, 0.95, 0.99)] == [2, 3, 4]
    assert trials_to(trace[:2], 0.95) is None


def test_a_run_ends_with_the_goal(folder: Path) -> None:
    trace = run(Race(folder / "small.npz", Contestant.default(), seed=0, round_size=4))
    assert trace == sorted(trace, reverse=True)
    assert trials_to(trace, 0.99) is not None and trials_to(trace[:-4], 0.99) is None
    short = run(Race(folder / "small.npz", Contestant.default(), seed=0, round_size=4, most=3))
    assert short == trace[:3] and len(short) == 3


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_uniform_drawing_is_what_shuffling_gives(share: float) -> None:
    whole = grid()
    rng = np.random.default_rng(0)
    times = np.sort(np.random.default_rng(1).lognormal(sigma=0.2, size=len(whole.rows)))
    plain = replace(
        whole, seconds=times, clock=np.ones(len(times)), again_rows=whole.again_rows[:0],
        again=whole.again[:0], again_clock=whole.again_clock[:0],
    )  # fmt: skip
    good = plain.times <= plain.best_s / 0.9
    needed = [int(np.argmax(good[rng.permutation(len(good))])) + 1 for _ in range(4000)]
    found = expected(plain, 0.9, share)
    assert np.mean(np.array(needed) <= found) >= share - 0.03
    assert np.mean(np.array(needed) < found) <= share + 0.03


def test_an_outcome_keeps_where_the_best_improved(folder: Path) -> None:
    race = Race(folder / "small.npz", Contestant.default(), seed=1, round_size=4)
    trace, found = run(race), replayed(race)
    assert found["trials"] == len(trace)
    assert found["trials_to"] == {"0.95": trials_to(trace, 0.95), "0.99": trials_to(trace, 0.99)}
    points = found["points"]
    assert isinstance(points, list)
    assert all(trace[n - 1] == value for n, value in points)
    assert [value for _, value in points] == sorted({v for v in trace if np.isfinite(v)})[::-1]


def test_spaces_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(folder)]) == 0
    assert "matmul_40_36_60" in capsys.readouterr().out
    assert main(["--folder", str(folder), "none"]) == 2
    assert "no space is called 'none'" in capsys.readouterr().err
