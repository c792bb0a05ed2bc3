"""Races on a small grid: what is counted, and the exact figures of uniform drawing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.search.race import Contestant, Race, expected, run, trials_to
from benchmarks.search.report import Results

from ansorpy.errors import UsageError
from ansorpy.measure.recorded_grid import Grid, write_grid
from benchmarks.search.__main__ import main
from tests.search.grids import grid_of
from tests.search.tasks import matmul


def grid() -> Grid:
    return grid_of(matmul(40, 36, 60), points=80)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spaces").mkdir()
    write_grid(grid(), tmp_path / "spaces" / "small.npz")
    return tmp_path / "spaces"


def test_contestants_are_named() -> None:
    assert Contestant.parse("evolution") == Contestant("evolution")
    assert Contestant.parse("random:top_k").name == "random:top_k"
    assert Contestant.parse("evolution:epsilon_greedy").name == "evolution"
    assert Contestant.parse("evolution:top_k", "analytic").name == "evolution:top_k, analytic"
    with pytest.raises(UsageError, match=r"is not STRATEGY\[:SELECTOR\]"):
        Contestant.parse("a:b:c")


def test_trials_to_a_share_of_the_best() -> None:
    trace = [np.inf, 2.0, 1.05, 1.0]
    assert [trials_to(trace, share) for share in (0.4, 0.95, 0.99)] == [2, 3, 4]
    assert trials_to(trace[:2], 0.95) is None


def test_a_run_ends_with_the_goal(folder: Path) -> None:
    trace = run(Race(folder / "small.npz", Contestant("evolution"), seed=0, round_size=4))
    assert trace == sorted(trace, reverse=True)
    assert trials_to(trace, 0.99) is not None and trials_to(trace[:-4], 0.99) is None
    short = run(Race(folder / "small.npz", Contestant("evolution"), seed=0, round_size=4, most=3))
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


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    json = tmp_path / "out.json"
    common = ["--folder", str(folder), "--jobs", "1"]
    options = ["--seeds", "2", "--strategies", "evolution", "random:top_k", "--json", str(json)]
    assert main([*common, *options]) == 0
    text = capsys.readouterr().out
    assert "trials to 95% of the best" in text and "geometric means over the spaces" in text
    results = Results.model_validate_json(json.read_text())
    names = {s.contestant for s in results.summaries}
    assert names == {"uniform", "evolution", "random:top_k"}
    assert len(results.traces["small"]["evolution"]) == 2
    assert main([*common, "--list"]) == 0
    assert "matmul_40_36_60" in capsys.readouterr().out
    assert main([*common, "--spaces", "none"]) == 2
    assert "no space is called 'none'" in capsys.readouterr().err
