"""A search in a notebook is one output, which is replaced and ends with what was found."""

from __future__ import annotations

import io
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansorpy.api.display import notebook
from ansorpy.api.display.board import Board
from ansorpy.api.display.notebook import NotebookDisplay
from ansorpy.search.events import Event, Phase
from tests.api.display.events import LARGE, planned, report


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an output has, one state after the other; there are no others."""
    found: list[str] = []

    def display(page: str, *, display_id: bool) -> SimpleNamespace:
        assert not found and display_id
        found.append(page)
        return SimpleNamespace(update=found.append)

    fake = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return found


def show(*events: Event) -> None:
    board = Board()
    with NotebookDisplay(board, io.StringIO()) as display:
        for event in events:
            board(event)
            display(event)


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes whenever the clock is read."""
    monkeypatch.setattr(notebook, "time", SimpleNamespace(monotonic=count().__next__))


def search(folder: Path) -> tuple[Event, Event]:
    return planned(folder / "t.db", trials=64), report(trials=5, total_trials=5, best_s=1e-3)


@pytest.mark.usefixtures("slowly")
def test_the_tasks_of_a_search_are_left(pages: list[str], tmp_path: Path) -> None:
    show(*search(tmp_path))
    *_, last, end = pages
    assert "trials" in last and "measuring" in last
    assert LARGE.name in end and "1.000 ms" in end and "measuring" not in end


@pytest.mark.usefixtures("slowly")
def test_nothing_is_left_of_what_measured_nothing(pages: list[str]) -> None:
    show(report(phase=Phase.PICKED, total_trials=1, trial_limit=4))
    chosen, end = pages
    assert "program 1/4 chosen" in chosen and end == ""


def test_what_ends_soon_is_not_shown(pages: list[str], tmp_path: Path) -> None:
    show(*search(tmp_path))
    assert not pages
