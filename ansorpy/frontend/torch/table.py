"""The table of ATen operators, from name to translation, collected from the family modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansorpy.frontend.torch.operators import elementwise, indexing, layers, movement, reduction

__all__ = ["OPERATORS", "Translate", "name_of"]

Translate = Callable[..., str | tuple[str | None, ...]]
"""Writes the nodes of an operator, whose operands are those of ATen, and returns their results.

A result that only training needs may be None.
"""

OPERATORS: Mapping[str, Translate] = {
    **elementwise.OPERATORS,
    **indexing.OPERATORS,
    **layers.OPERATORS,
    **movement.OPERATORS,
    **reduction.OPERATORS,
}


def name_of(target: object) -> str:
    """The name of an operator and its overload; without its domain if that is ATen or ours."""
    return str(target).removeprefix("aten.").removeprefix("ansorpy.")
