"""A board adds up what a search has reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.api.display.board import Board
from ansorpy.api.display.text import reached
from ansorpy.api.events import PeerTimed, Planned
from ansorpy.api.request import Request
from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Phase
from ansorpy.tasks.trial_plan import Before, plan
from tests.api.display.events import LARGE, SMALL, planned, report


def test_rows_have_the_plan_and_what_the_tasks_got(tmp_path: Path) -> None:
    board = Board()
    board(planned(tmp_path / "t.db", trials=64))
    board(report(trials=5, total_trials=5, trial_limit=64, best_s=2e-3, first_s=3e-3))
    large, small = board.rows[LARGE.key], board.rows[SMALL.key]
    assert (large.got, small.got) == (5, 0) and (large.planned or 0) > (small.planned or 0) >= 2
    assert large.roofline == pytest.approx(large.least_s / 2e-3) and small.roofline is None
    assert sum(board.shares().values()) == pytest.approx(1.0) and board.missing == 1
    assert board.done() == pytest.approx(5 / 64)


def test_a_run_begins_with_no_trials_of_its_own() -> None:
    budget = Request.of(trials=8).budget
    assert budget is not None
    made = plan({LARGE: 1.0}, budget, {LARGE.key: Before(trials=5, best_s=1e-3)})
    board = Board()
    board(Planned((), Request.of(trials=8), made))
    assert board.got == 0 and board.trials == 5
    assert reached(board) == "all tasks have measured programs"


def test_shares_are_those_of_the_calls_that_are_made_now(tmp_path: Path) -> None:
    board = Board()
    board(planned(tmp_path / "t.db", trials=64))
    board(report(best_s=3e-3))
    board(report(large=False, best_s=1e-3, calls={LARGE.key: 1.0, SMALL.key: 1.0}))
    assert board.shares() == pytest.approx({LARGE.key: 0.75, SMALL.key: 0.25})


def test_the_time_left_is_that_of_the_limit_or_goes_by_the_pace(tmp_path: Path) -> None:
    timed, counted = Board(), Board()
    timed(planned(tmp_path / "t.db", time_limit=60), now=100.0)
    timed(report(left_s=45.0), now=115.0)
    assert timed.left_s(now=120.0) == 40.0 and timed.done(now=130.0) == 0.5
    counted(planned(tmp_path / "t.db", trials=64), now=100.0)
    assert counted.left_s(now=101.0) is None
    counted(report(total_trials=16, trial_limit=64), now=108.0)
    assert counted.left_s(now=108.0) == 24.0


def test_trials_under_a_time_limit_are_expected_by_the_pace(tmp_path: Path) -> None:
    timed, counted = Board(), Board()
    timed(planned(tmp_path / "t.db", time_limit=60), now=100.0)
    assert timed.planned and timed.pace(now=100.0) == 1.0
    timed(report(total_trials=20, left_s=30.0), now=130.0)
    assert timed.pace(now=130.0) * timed.planned == pytest.approx(40)
    counted(planned(tmp_path / "t.db", trials=64), now=100.0)
    counted(report(total_trials=32, trial_limit=64), now=108.0)
    assert counted.pace(now=108.0) == 1.0


def test_failures_of_all_tasks_add_up() -> None:
    board = Board()
    board(report(failures={TrialKind.CRASH: 1}))
    board(report(failures={TrialKind.CRASH: 2}))
    board(report(large=False, failures={TrialKind.CRASH: 1, TrialKind.TIMEOUT: 5}))
    assert [*board.failures.items()] == [(TrialKind.TIMEOUT, 5), (TrialKind.CRASH, 3)]


def test_gain_and_peers() -> None:
    board = Board()
    assert board.gain is None
    board(report(total_s=2e-3, untuned_s=5e-3))
    board(PeerTimed("onnxruntime", 3e-3))
    assert board.gain == 2.5 and board.peers == {"onnxruntime": 3e-3}
    board(report(phase=Phase.PICKED, total_trials=3, trial_limit=27))
    assert board.picked == (3, 27) and board.total_s == 2e-3
