"""Tables for users: fitted to a terminal's width, aligned plain text elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from ansorpy.notebook import grid

__all__ = ["Table", "say", "show"]

_GAP = 2
_LONGEST_NAME = 48
"""Longer names, as those of tensors, do not decide how wide a table is: they stand on a line of
their own, with their figures below."""
_FILLED: Any = {
    "subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False,
}  # fmt: skip
_NARROWEST = 16
"""Prose and names get at least as many columns, even if lines are then longer than a terminal's."""


@dataclass(frozen=True)
class Table:
    """A titled table of text cells; columns named in ``numeric`` are right-aligned."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()

    def text(self) -> str:
        """The table as aligned lines, without a final newline."""
        lines = [*_headed(self, _widths(self)), *_body(self, _widths(self))]
        return "\n".join([self.title, *lines] if self.title else lines)

    def _repr_html_(self) -> str:
        return grid(self.heading, self.rows, self.numeric, self.title)


def show(table: Table, file: TextIO | None = None) -> None:
    """Print *table*: drawn if *file* (default stdout) is a terminal, otherwise as plain text."""
    file = file or sys.stdout
    if not file.isatty():
        print(table.text(), file=file)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file)
    widths = _fitted(table, console.width)
    lines = [Text(line, "bold") for line in _headed(table, widths)]
    lines.append(Text("─" * _total(widths)))
    lines += [Text(line) for line in _body(table, widths)]
    if table.title:
        lines.insert(0, Text(table.title, "italic"))
    for line in lines:
        console.print(line, soft_wrap=True)


def say(text: str, file: TextIO | None = None) -> None:
    """Print the lines of *text*; on a terminal, they break between words where it ends."""
    file = file or sys.stdout
    if not file.isatty():
        print(text, file=file)
        return
    from rich.console import Console

    width = Console(file=file).width
    for line in text.splitlines():
        print(textwrap.fill(line, width, **_FILLED) if len(line) > width else line, file=file)


def _widths(table: Table) -> list[int]:
    """The width of each column with headings in one line, and prose, too."""
    names = _names(table)
    return [
        max(len(name), _widest(table, column, _LONGEST_NAME if column == names else None))
        for column, name in enumerate(table.heading)
    ]


def _fitted(table: Table, room: int) -> list[int]:
    """Widths of which the sum is at most *room*, if possible.

    First headings are wrapped, then prose, the widest column first; then names that are too long
    get lines of their own.
    """
    widths, names = _widths(table), _names(table)
    if _total(widths) <= room:
        return widths
    for column, name in enumerate(table.heading):
        cells = _widest(table, column, _LONGEST_NAME if column == names else None)
        widths[column] = max([cells, *map(len, name.split())])
    prose = [c for c, name in enumerate(table.heading) if name not in table.numeric and c != names]
    while _total(widths) > room and prose:
        widest = max(prose, key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    if _total(widths) > room and names is not None:
        left = max(room - _total(widths) + widths[names], _NARROWEST)
        word = max(map(len, table.heading[names].split()))
        widths[names] = min(widths[names], max(_widest(table, names, left), word))
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _names(table: Table) -> int | None:
    """The column that names the rows: the first one of words without spaces, before others."""
    for column, name in enumerate(table.heading[:-1]):
        cells = [row[column] for row in table.rows]
        if name and name not in table.numeric and not any(" " in cell for cell in cells):
            return column
    return None


def _widest(table: Table, column: int, limit: int | None = None) -> int:
    """The length of the longest cell, of those not longer than *limit*."""
    lengths = [len(row[column]) for row in table.rows]
    return max((n for n in lengths if limit is None or n <= limit), default=0)


def _headed(table: Table, widths: Sequence[int]) -> Iterator[str]:
    """The lines of the heading; a column's words stand directly above its cells."""
    cells = [_wrapped(name, width) for name, width in zip(table.heading, widths, strict=True)]
    height = max(map(len, cells))
    cells = [[""] * (height - len(lines)) + lines for lines in cells]
    yield from _aligned(table, cells, widths)


def _body(table: Table, widths: Sequence[int]) -> Iterator[str]:
    """The lines of the rows."""
    names = _names(table)
    for row in table.rows:
        cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        if names is not None and len(row[names]) > widths[names]:
            before = [lines if c < names else [""] for c, lines in enumerate(cells)]
            start = next(_aligned(table, before, widths)).ljust(_total(widths[:names]) + _GAP)
            yield (start if names else "") + row[names]
            cells = [[""] if c <= names else lines for c, lines in enumerate(cells)]
        yield from _aligned(table, cells, widths)


def _wrapped(cell: str, width: int) -> list[str]:
    return (
        textwrap.wrap(cell, max(width, 1), break_on_hyphens=False) if len(cell) > width else [cell]
    )


def _aligned(
    table: Table, cells: Sequence[Sequence[str]], widths: Sequence[int]
) -> Iterator[str]:  # fmt: skip
    """The lines of one row whose *cells* have some lines each."""
    for number in range(max(map(len, cells))):
        parts = []
        for name, lines, width in zip(table.heading, cells, widths, strict=True):
            part = lines[number] if number < len(lines) else ""
            parts.append(part.rjust(width) if name in table.numeric else part.ljust(width))
        yield (" " * _GAP).join(parts).rstrip()
