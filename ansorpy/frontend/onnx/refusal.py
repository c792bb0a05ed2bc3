"""The error that names every node that cannot be compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ansorpy.constants import constant_flags
from ansorpy.errors import UnsupportedModel, UnsupportedRow

__all__ = ["unsupported"]


def unsupported(rows: Sequence[UnsupportedRow]) -> UnsupportedModel:
    """The error whose table has *rows*; those with the same operator and message become one."""
    return UnsupportedModel(
        f"{len(rows)} node(s) of the model cannot be compiled",
        rows=_grouped(rows),
        hint=_hint(rows),
    )


def _hint(rows: Sequence[UnsupportedRow]) -> str:
    """What to do about all *rows* together."""
    if all(row.needs for row in rows):
        names = dict.fromkeys(name for row in rows for name in row.needs)
        return f"the nodes need inputs that are known when you compile: {constant_flags(names)}"
    return "change these nodes in the exporting program, or remove them from the model"


def _grouped(rows: Iterable[UnsupportedRow]) -> list[UnsupportedRow]:
    """One row for each operator and message, of the first node, with the number of nodes."""
    groups: dict[tuple[str, str, str, str], list[UnsupportedRow]] = {}
    for row in rows:
        groups.setdefault((row.domain, row.op, row.attribute, row.advice), []).append(row)
    return [replace(found[0], count=len(found)) for found in groups.values()]
