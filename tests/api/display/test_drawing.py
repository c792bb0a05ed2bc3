"""What a terminal and a notebook show of a search."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from ansorpy.api.display.board import Board
from ansorpy.api.display.drawing import Drawing
from ansorpy.api.display.notebook import html
from ansorpy.measure.result import TrialKind
from tests.api.display.events import LARGE, SMALL, planned, report


@pytest.fixture
def board(tmp_path: Path) -> Board:
    board = Board()
    board(planned(tmp_path / "t.db", trials=64))
    least_s = board.rows[LARGE.key].least_s
    board(report(trials=5, total_trials=5, trial_limit=64, best_s=2 * least_s, first_s=1.0,
                 failures={TrialKind.CRASH: 2}))  # fmt: skip
    return board


def drawn(board: Board, width: int, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(Drawing(board))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_a_bar_and_a_row_for_each_task(board: Board, width: int) -> None:
    bar, name, heading, *rows, state = drawn(board, width)
    assert bar.startswith("5 of 64 trials") and bar.endswith("left")
    assert "1 of 2 tasks have no measured program" in name
    assert heading.split()[:2] == ["task", "time"] and ("untuned" in heading) == (width == 120)
    assert rows[0].startswith(LARGE.name) and " 50%" in rows[0] and rows[0].endswith("-2")
    assert rows[1].startswith(SMALL.name) and f"0/{board.rows[SMALL.key].planned}" in rows[1]
    assert state == f"measuring {LARGE.name}  failed: 2 crash"
    assert all(len(text) <= width for text in rows)


def test_tasks_that_do_not_fit_are_added_up(board: Board) -> None:
    board.rows |= {str(number): board.rows[SMALL.key] for number in range(40)}
    texts = drawn(board, 80, height=12)
    assert len(texts) <= 12 and any("37 other tasks, " in text for text in texts)


def test_a_notebook_shows_the_same(board: Board) -> None:
    page = html(Drawing(board))
    assert LARGE.name in page and page.startswith("<pre") and "color: " in page
