"""Families of operators: each function appends nodes of one kind to a network.

Shapes and attributes are solved for the operands that a function picks, so its nodes are valid.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.campaigns.networks.families.elementwise import ELEMENTWISE
from tests.campaigns.networks.families.further import FURTHER
from tests.campaigns.networks.families.movement import MOVEMENT
from tests.campaigns.networks.families.patterns import PATTERNS
from tests.campaigns.networks.families.products import PRODUCTS
from tests.campaigns.networks.families.reductions import REDUCTIONS
from tests.campaigns.networks.growing import Growing

__all__ = ["FAMILIES"]

FAMILIES: dict[Callable[[Growing], None], float] = {
    **ELEMENTWISE, **FURTHER, **MOVEMENT, **PATTERNS, **PRODUCTS, **REDUCTIONS,
}  # fmt: skip
"""The functions, and how often each is drawn relative to the others."""
