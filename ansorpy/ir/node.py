"""The decorator of all IR node classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

__all__ = ["node"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Declare an IR node: immutable, compared by identity, with typed fields.

    Identity keeps comparison O(1) on shared subtrees; code that compares structure calls
    :func:`ansorpy.ir.analysis.structural_equality.same_structure`.  Writing a field raises only
    under ``__debug__``: the check costs construction time and cannot change a result.
    """
    return dataclass(frozen=__debug__, eq=False, slots=True)(cls)
