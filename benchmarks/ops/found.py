"""Determines which definition of a case the best recorded program computes."""

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
        record = database.best(task.key)
        if record is None:
            return ""
        found = structural_hash(database.definitions.get(record.definition))
    known = definitions(task.dag, preset_for(task.target).algorithms, task.target, task.precision)
    names = {structural_hash(definition.dag): definition.name for definition in known}
    return names.get(found, "another")
