"""A board drawn with rich: the budget as a bar, the network's time, and a row for each task."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ansorpy.api.display.board import Board, Row
from ansorpy.api.display.text import clock, comparisons, failures_text, reached, status
from ansorpy.quantities import latency_text

__all__ = ["Drawing", "Result"]

_FRAME = 6
"""Lines of a drawing besides its rows: budget, time, heading, status, and room for the prompt."""
_WIDE = 100
"""Columns from which each task's gain is shown, too."""
_FRESH_S = 4.0
"""Seconds for which an improved time is highlighted."""
_NEAR, _FAR = 0.75, 0.4
"""At these fractions of the roofline, its colour changes."""


class Drawing:
    """A board as a rich renderable, which is drawn as it is at that time.

    Args:
        rows: How many tasks are drawn at most; default: as many as fit on the console.
    """

    def __init__(self, board: Board, rows: int | None = None) -> None:
        self._board = board
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        board = self._board
        if not board.rows or board.ended:  # nothing is measured, or nothing more
            yield _state(board)
            return
        most = self._rows or max(console.height - _FRAME, 3)
        tasks = _tasks(board, most, options.max_width)
        yield Group(_budget(board), _latency(board), *tasks, _state(board))


class Result:
    """What a search found, for every task, as a rich renderable."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _tasks(self._board, len(self._board.rows), options.max_width)


def _budget(board: Board) -> Table:
    """The bar of the budget, between what was measured and how much time is left."""
    grid = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None):
        grid.add_column(no_wrap=True, ratio=ratio)
    trials = f"{board.got} of ~{round((board.planned or 0) * board.pace())} trials"
    if board.trial_limit:  # those of earlier runs count, too
        trials = f"{board.trials} of {board.trial_limit} trials"
    left_s = board.left_s()
    left = "" if left_s is None else f"{clock(left_s)} left"
    bar = ProgressBar(total=1.0, completed=board.done(), complete_style="cyan")
    grid.add_row(Text(trials, style="bold"), bar, Text(left))
    return grid


def _latency(board: Board) -> Text:
    """The networks' best time, compared with untuned programs and with peers."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{board.name}  ", style="bold")
    if board.total_s is None:
        return text.append(reached(board), style="dim")
    text.append(latency_text(board.total_s), style="bold green")
    for part in comparisons(board):
        text.append("  " + part)
    return text


def _tasks(board: Board, most: int, width: int) -> Sequence[Table | Text]:
    """The tasks that take the most time, and how many others there are."""
    shares, pace = board.shares(), board.pace()
    keys = sorted(board.rows, key=lambda key: -shares[key])
    shown = keys if len(keys) <= most else keys[: most - 1]
    is_wide = width >= _WIDE
    table = Table(box=None, padding=(0, 1), expand=True, header_style="dim", pad_edge=False)
    table.add_column("task", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("time", justify="right", no_wrap=True)
    if is_wide:
        table.add_column("untuned", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("of roofline", no_wrap=True)
    table.add_column("trials", justify="right", no_wrap=True)
    for key in shown:
        row = board.rows[key]
        marks = "bold" if key == board.current else ""
        cells = [Text(row.name, style=marks), _time(board, row)]
        if is_wide:
            cells.append(
                Text("" if row.first_s is None else latency_text(row.first_s), style="dim")
            )
        table.add_row(*cells, Text(f"{shares[key]:.0%}"), _roofline(row), _trials(row, pace))
    left = len(keys) - len(shown)
    rest = sum(shares[key] for key in keys[len(shown) :])
    others = [Text(f"{left} other tasks, {rest:.0%} of the time", style="dim")] if left else []
    return [table, *others]


def _time(board: Board, row: Row) -> Text:
    if row.best_s is None:
        return Text("-", style="red" if row.failures else "dim")
    is_fresh = board.noted_at - row.improved_at < _FRESH_S
    return Text(latency_text(row.best_s), style="bold green" if is_fresh else "")


def _roofline(row: Row) -> Text:
    """A bar and a percentage; colours say how near the roofline the task is."""
    share = row.roofline
    if share is None:
        return Text("-", style="dim")
    colour = "green" if share >= _NEAR else "yellow" if share >= _FAR else "red"
    full = min(round(8 * share), 8)
    return Text.assemble(("━" * full, colour), ("━" * (8 - full), "bright_black"), f" {share:4.0%}")


def _trials(row: Row, pace: float) -> Text:
    planned = "" if row.planned is None else f"/{round(row.planned * pace)}"
    text = Text(f"{row.got}{planned}", style="" if row.got else "dim")
    failed = sum(row.failures.values())
    return text.append(f" -{failed}", style="red") if failed else text


def _state(board: Board) -> Text:
    """What is being done, and what failed."""
    text = Text(status(board), style="dim", no_wrap=True, overflow="ellipsis")
    failed = failures_text(board)
    return text.append(f"  failed: {failed}", style="red") if failed else text
