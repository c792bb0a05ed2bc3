"""``--strategy`` and similar options: parts of a search from names and plugins."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ansorpy.api.parts import PARTS, Parts, load_plugin
from ansorpy.report.tables import Table

__all__ = ["chosen_parts", "parts_table"]


def chosen_parts(plugins: Iterable[Path] | None, **names: str) -> Parts:
    """The parts of these names; *plugins* run first and may register some.

    Raises:
        UsageError: An unknown name, or a plugin that fails.
    """
    for plugin in plugins or ():
        load_plugin(plugin)
    return Parts(**names)


def parts_table() -> Table:
    """The table of available parts, one per row."""
    rows = [
        (f"--{kind.replace('_', '-')}", name, text)
        for kind, registry in PARTS.items()
        for name, text in registry.descriptions().items()
    ]
    return Table("", ("option", "name", "what it does"), tuple(rows))
