"""The learned models that ship with ansorpy: a file for each family of machines that was recorded.

A file of ``ansorpy dataset train`` becomes one when it is put into this folder, under any name.
Machines of other families get the closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.target import Target

__all__ = ["pretrained_for", "shipped_files", "shipped_model"]


def shipped_files() -> Iterator[Path]:
    """The files of all models."""
    yield from sorted(Path(__file__).parent.glob("*.txt"))


@lru_cache(maxsize=8)
def pretrained_for(target: Target) -> SavedModel | None:
    """The model for machines like *target*; None if none ships, or features have changed since."""
    found = (SavedModel.shipped(path, target.family) for path in shipped_files())
    return next((model for model in found if model is not None), None)


@lru_cache(maxsize=8)
def shipped_model(target: Target) -> CostModel | None:
    """The same, to score with; one object for all tasks, which must not learn."""
    shipped = pretrained_for(target)
    return None if shipped is None else shipped()
