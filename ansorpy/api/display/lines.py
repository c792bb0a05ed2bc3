"""A search shown as plain lines: one every few seconds."""

from __future__ import annotations

import time
from typing import TextIO

from ansorpy.api.display.base import Display
from ansorpy.api.display.board import Board
from ansorpy.api.display.text import line
from ansorpy.search.events import Event, Phase, Progress

__all__ = ["LINE_S", "Lines"]

LINE_S = 5.0
"""Least seconds between two lines."""


class Lines(Display):
    """Prints what *board* says to *file*: first at once, then every few seconds, and at the end."""

    def __init__(self, board: Board, file: TextIO) -> None:
        self._board = board
        self._file = file
        self._printed_at = float("-inf")

    def __call__(self, event: Event) -> None:
        """Print a line if the last one was printed long enough ago."""
        if not isinstance(event, Progress) or event.phase is Phase.RESUMED:
            return
        is_last = event.phase is Phase.FINISHED or self._is_last_pick(event)
        if is_last or time.monotonic() - self._printed_at >= LINE_S:
            self._printed_at = time.monotonic()
            print(line(self._board), file=self._file, flush=True)

    @staticmethod
    def _is_last_pick(event: Progress) -> bool:
        return event.phase is Phase.PICKED and event.total_trials == event.trial_limit
