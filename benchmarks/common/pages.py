"""The parts of documents that benchmarks write, between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from ansorpy.config import available_cores
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table, show
from ansorpy.target import machine_name
from ansorpy.version import __version__
from benchmarks.common.cells import markdown

__all__ = ["between_marks", "into", "marked", "marks", "publish"]


def marks(name: str) -> tuple[str, str]:
    """The marks around what the benchmark *name* writes."""
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def between_marks(text: str, name: str) -> str:
    """What the benchmark *name* wrote into *text*; empty if it wrote nothing."""
    begin, end = marks(name)
    _, found, rest = text.partition(f"{begin}\n")
    section, closed, _ = rest.partition(f"\n{end}")
    return section if found and closed else ""


def marked(section: str, name: str) -> str:
    """*section* between the marks of *name*."""
    begin, end = marks(name)
    return f"{begin}\n{section}\n{end}"


def into(text: str, section: str, name: str) -> str:
    """Replace the part of *text* between the two marks of *name* by *section*.

    Raises:
        UsageError: The marks are missing or out of order.
    """
    begin, end = marks(name)
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise UsageError("the document has no place for the tables", hint=f"add {begin} {end}")
    return f"{before}{marked(section, name)}{after}"


def publish(tables: Sequence[Table], name: str, page: Path | None) -> None:
    """Print *tables*; in a *page*, if given, replace what the benchmark *name* wrote by them.

    The page says when and on which machine they were made.

    Raises:
        UsageError: The page has no place for them.
    """
    for number, table in enumerate(tables):
        if number:
            print()
        show(table)
    if page is None:
        return
    where = f"Measured on {date.today()}, {available_cores()} cores of {machine_name()}"
    parts = [f"{where}; ansorpy {__version__}."]
    for table in tables:
        parts += [f"{table.title}:"] if table.title else []
        parts.append(markdown(table.heading, table.rows))
    page.write_text(into(page.read_text(), "\n\n".join(parts), name))
