"""Where the structures of a task come from."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.task import Task
from ansorpy.rules.presets import Preset
from ansorpy.rules.structure import Structure, StructureSampler

__all__ = ["DerivedStructures"]

_MISSES = 4
"""Draws in a row that may give nothing new: small tasks have few structures."""


class DerivedStructures:
    """Structures of *task* by the derivation rules; the sketches are derived once."""

    def __init__(self, task: Task, preset: Preset | None = None) -> None:
        self.sampler = StructureSampler(task, preset)

    def draw(self, n: int, rng: np.random.Generator) -> list[Structure]:
        """At most *n* different structures: of every sketch one while *n* allows, then random."""
        found: dict[str, Structure] = {}
        for sketch in rng.permutation(len(self.sampler.sketches))[:n]:
            structure = self.sampler.place(int(sketch), rng)
            found.setdefault(structure.key, structure)
        misses = 0
        while len(found) < n and misses < _MISSES:
            structure = self.sampler.draw(rng)
            misses = misses + 1 if structure.key in found else 0
            found.setdefault(structure.key, structure)
        return list(found.values())
