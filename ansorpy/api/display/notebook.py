"""A search shown in a notebook: one output, which is replaced until it has what was found."""

from __future__ import annotations

import io
import time
from typing import Any, TextIO

from rich.console import Console, RenderableType

from ansorpy.api.display.base import Display
from ansorpy.api.display.board import Board
from ansorpy.api.display.drawing import Drawing, Result
from ansorpy.search.events import Event

__all__ = ["NotebookDisplay", "html"]

_REFRESH_S = 0.5
_WIDTH, _ROWS = 100, 20
_FORMAT = '<pre style="line-height: 1.3; font-family: monospace">{code}</pre>'


class NotebookDisplay(Display):
    """Shows *board* below the cell that runs, whatever *file* is.

    Nothing is shown of what ends soon.  Of a search, its tasks are left; of what measures nothing,
    nothing is.
    """

    def __init__(self, board: Board, file: TextIO) -> None:
        self._board = board
        self._handle: Any = None
        self._shown_at = time.monotonic()

    def __exit__(self, *exception: object) -> None:
        if self._handle is not None:
            self._show(html(Result(self._board)) if self._board.rows else "")

    def __call__(self, event: Event) -> None:
        """Show the board again if it was shown long enough ago."""
        if time.monotonic() - self._shown_at >= _REFRESH_S:
            self._show(html(Drawing(self._board, _ROWS)))

    def _show(self, page: str) -> None:
        from IPython.display import HTML, display

        self._shown_at = time.monotonic()
        if self._handle is None:
            self._handle = display(HTML(page), display_id=True)
        else:
            self._handle.update(HTML(page))


def html(drawn: RenderableType) -> str:
    """What rich draws as a piece of HTML."""
    console = Console(
        file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, force_jupyter=False
    )
    console.print(drawn)
    return console.export_html(inline_styles=True, code_format=_FORMAT)
