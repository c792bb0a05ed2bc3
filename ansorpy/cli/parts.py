"""Table of the parts that ``--strategy`` and similar options choose from."""

from __future__ import annotations

from ansorpy.api.parts import PARTS
from ansorpy.evaluation.tables import Table

__all__ = ["parts_table"]


def parts_table() -> Table:
    """The table of available parts, one per row."""
    rows = [
        (f"--{kind.replace('_', '-')}", name, text)
        for kind, registry in PARTS.items()
        for name, text in registry.descriptions().items()
    ]
    return Table("", ("option", "name", "what it does"), tuple(rows))
