"""All routines by name, for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.places import Inverse, TruePlaces
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.rows import RowOrder
from ansorpy.ir.routines.scatters import SCATTERS
from ansorpy.ir.routines.suppression import Suppression
from ansorpy.ir.routines.top import TopPlaces

__all__ = ["ROUTINES", "routine_of"]

_KINDS: tuple[type[Routine], ...] = (
    Inverse, Prefixes, RowOrder, Suppression, TopPlaces, TruePlaces, *SCATTERS,
)  # fmt: skip
ROUTINES: Mapping[str, type[Routine]] = {kind.name: kind for kind in _KINDS}


def routine_of(name: str, settings: Mapping[str, Any]) -> Routine:
    """The routine called *name* with these *settings*.

    Raises:
        ValueError: There is none, or its settings are others.
    """
    kind = ROUTINES.get(name)
    if kind is None:
        raise ValueError(f"there is no routine {name!r:.40}")
    names = {field.name for field in fields(kind)}
    if settings.keys() != names or not all(type(value) is bool for value in settings.values()):
        raise ValueError(f"{name} has the settings {sorted(names)}, got {settings!r:.80}")
    return kind(**settings)
