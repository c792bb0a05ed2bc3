"""A search shown on a terminal, in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live

from ansorpy.api.display.base import Display
from ansorpy.api.display.board import Board
from ansorpy.api.display.drawing import Drawing
from ansorpy.api.events import Tuned
from ansorpy.search.events import Event

__all__ = ["TerminalDisplay"]


class TerminalDisplay(Display):
    """Draws *board* on the terminal *file* again and again; at the end nothing is left of it."""

    def __init__(self, board: Board, file: TextIO) -> None:
        self._drawing = Drawing(board)
        self._console = Console(file=file, highlight=False)
        self._live = self._opened()

    def _opened(self) -> Live:
        return Live(self._drawing, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> TerminalDisplay:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Draw what is final at once; everything else is drawn in its time."""
        if isinstance(event, Tuned):
            self._live.refresh()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the drawing away while the block runs."""
        self._live.stop()
        yield
        self._live = self._opened()  # the old one would erase as many lines as it had drawn
        self._live.start()
