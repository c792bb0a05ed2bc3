"""Tables for users: drawn with rich on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TextIO

from ansorpy.notebook import grid

__all__ = ["Table", "show"]


@dataclass(frozen=True)
class Table:
    """A titled table of text cells; columns named in ``numeric`` are right-aligned."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()

    def text(self) -> str:
        """The table as aligned lines, without a final newline."""
        cells = (self.heading, *self.rows)
        widths = [max(len(row[c]) for row in cells) for c in range(len(self.heading))]
        lines = [self.title] if self.title else []
        for row in cells:
            padded = (
                cell.rjust(width) if name in self.numeric else cell.ljust(width)
                for name, cell, width in zip(self.heading, row, widths, strict=True)
            )
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return grid(self.heading, self.rows, self.numeric, self.title)


def show(table: Table, file: TextIO | None = None) -> None:
    """Print *table*: drawn if *file* (default stdout) is a terminal, otherwise as plain text."""
    file = file or sys.stdout
    if not file.isatty():
        print(table.text(), file=file)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    drawn = RichTable(
        title=table.title or None, title_justify="left", box=SIMPLE_HEAD, show_edge=False,
        pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for name in table.heading:
        is_number = name in table.numeric
        drawn.add_column(
            name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in table.rows:
        drawn.add_row(*row)
    Console(file=file, highlight=False, markup=False).print(drawn)
