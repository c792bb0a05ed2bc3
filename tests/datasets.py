"""Small datasets whose seconds are a formula's: recorded in a moment, without a machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from ansorpy.measure.program_dataset import MeasuredTask, ProgramDataset
from ansorpy.tasks.record import Recorder, RecordOptions
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul

__all__ = ["QUICK_OPTIONS", "formula_machines", "small_dataset"]

QUICK_OPTIONS = RecordOptions(programs=12, sketches=2, strategy=EVOLUTION, model=TREES)


@cache
def _recorded() -> tuple[MeasuredTask, ...]:
    tasks = [("a", matmul(24, 40, 36)), ("b", matmul(64, 32, 16)), ("b", dense_relu(17, 40, 20))]
    found = Recorder(FormulaRunner(), QUICK_OPTIONS).record(tasks)
    return tuple(each for each in found if isinstance(each, MeasuredTask))


def small_dataset() -> ProgramDataset:
    """Programs of three tasks of two networks."""
    dataset = ProgramDataset()
    for each in _recorded():
        dataset.add(each)
    return dataset


@contextmanager
def formula_machines(*_: object) -> Iterator[FormulaRunner]:
    """In place of :func:`ansorpy.measure.machines.open_machines`."""
    yield FormulaRunner()
