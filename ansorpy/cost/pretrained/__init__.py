"""The learned models that ship with ansorpy: a file for each family of machines that was recorded.

``python -m benchmarks.dataset`` writes the one of the machine it runs on.  Machines of other
families get the closed form.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.target import Target

__all__ = ["pretrained_for", "shipped_file", "shipped_model"]


def shipped_file(family: str) -> Path:
    """The file of the model for machines of *family*, which exists if one ships."""
    return Path(__file__).parent / f"{family.replace(' ', '_')}.txt"


@lru_cache(maxsize=8)
def pretrained_for(target: Target) -> SavedModel | None:
    """The model for machines like *target*; None if none ships, or features have changed since."""
    path = shipped_file(target.family)
    return SavedModel.shipped(path) if path.exists() else None


@lru_cache(maxsize=8)
def shipped_model(target: Target) -> CostModel | None:
    """The same, to predict with: one object for all tasks, which learns nothing."""
    shipped = pretrained_for(target)
    return None if shipped is None else shipped()
