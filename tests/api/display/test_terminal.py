"""The display on a terminal erases what it drew, and nothing else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ansorpy.api.display.board import Board
from ansorpy.api.display.terminal import TerminalDisplay
from tests.api.display.events import planned


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_printed_in_a_pause_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("TERM", "xterm")
    board, terminal = Board(), Terminal()
    board(planned(tmp_path / "t.db", trials=8))
    with TerminalDisplay(board, terminal) as display, display.paused():
        terminal.write("kept\n")
    after = terminal.getvalue().partition("kept\n")[2]
    drawn, up = after.partition("\x1b[1A")[:2]
    assert "task" in drawn and up, "the drawing begins before anything is erased"
