"""Choose how a search is shown: where its output goes decides, unless the caller does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Literal, TextIO, TypeAlias

from ansorpy.api.display.base import Display
from ansorpy.api.display.board import Board
from ansorpy.api.display.lines import Lines
from ansorpy.api.display.text import reached
from ansorpy.errors import UsageError
from ansorpy.search.events import Event, silent

__all__ = ["Shown", "display_for", "in_notebook", "lines_to", "say", "shown"]

Shown: TypeAlias = bool | Literal["auto"] | Callable[[Event], None]
"""How to show a search: ``"auto"`` on a terminal and in a notebook, ``True`` also as lines of text
elsewhere, ``False`` not at all; or a function that receives its events."""

_TERMINAL = "ansorpy.api.display.terminal:TerminalDisplay"
_NOTEBOOK = "ansorpy.api.display.notebook:NotebookDisplay"
"""Displays that need rich, which is loaded only where something is drawn."""


@contextmanager
def shown(progress: Shown) -> Iterator[Callable[[Event], None]]:
    """A listener that shows a search as *progress* says.

    Raises:
        UsageError: *progress* is something else.
    """
    if callable(progress):
        yield progress
        return
    if not isinstance(progress, bool) and progress != "auto":
        raise UsageError(
            f"progress cannot be {progress!r}",
            hint='use "auto", True, False, or a function that takes events',
        )
    is_visible = in_notebook() or (_has_stderr() and sys.stderr.isatty())
    is_wanted = progress is True or (progress == "auto" and is_visible)
    if not (is_wanted and (in_notebook() or _has_stderr())):
        yield silent
        return
    board = Board()
    with display_for(board, sys.stderr) as display:

        def listener(event: Event) -> None:
            board(event)
            display(event)

        yield listener
    if board.rows:
        say(f"{board.name}: {reached(board)}")


def lines_to(progress: Callable[[str], None] | None) -> Callable[[str], None]:
    """What receives lines that say how far work is: *progress*, or nothing.

    Raises:
        UsageError: *progress* is something else.
    """
    if not progress:
        return lambda line: None
    if not callable(progress):
        hint = "use a function that takes lines, such as print"
        raise UsageError(f"progress cannot be {progress!r}", hint=hint)
    return progress


def say(line: str) -> None:
    """Print *line* to stderr, if this process has one: programs without a console do not."""
    if _has_stderr():
        print(line, file=sys.stderr)


def _has_stderr() -> bool:
    file: TextIO | None = sys.stderr
    return file is not None and not getattr(file, "closed", False)


def display_for(board: Board, file: TextIO) -> Display:
    """The display of *board* that suits where the program runs and what *file* is."""
    if not (in_notebook() or file.isatty()):
        return Lines(board, file)
    display: Display = resolve_name(_NOTEBOOK if in_notebook() else _TERMINAL)(board, file)
    return display


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
