"""The parts of documents that benchmarks write, between two marks."""

from __future__ import annotations

from ansorpy.errors import UsageError

__all__ = ["into", "marks"]


def marks(name: str) -> tuple[str, str]:
    """The marks around what the benchmark *name* writes."""
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


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
    return f"{before}{begin}\n{section}\n{end}{after}"
