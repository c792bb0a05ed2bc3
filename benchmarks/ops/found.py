"""Determines which definition of a case the program in use computes."""

from __future__ import annotations

from pathlib import Path

from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.records.database import Database
from ansorpy.rules.algorithms.base import definitions
from ansorpy.rules.presets import preset_for
from ansorpy.target import Target
from benchmarks.ops.case import Case

__all__ = ["algorithm_found"]


def algorithm_found(case: Case, threads: int, db: Path) -> str:
    """``"direct"``, ``"winograd(4x4)"``, ...; empty if nothing is recorded."""
    task = Task(case.dag, Target.host(), threads)
    with Database(db) as database:
        best = database.best(task.key)
        used = database.checked(task.key) if best is None else [best]
        if not used:
            return ""
        found = structural_hash(database.definitions.get(used[0].definition))
    known = definitions(task.dag, preset_for(task.target).algorithms, task.target, task.precision)
    names = {structural_hash(definition.dag): definition.name for definition in known}
    return names.get(found, "another")
