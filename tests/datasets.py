"""Small datasets whose seconds are a formula's: recorded in a moment, without a machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, repeat

import pytest

from ansorpy.api import dataset as recording
from ansorpy.measure.probe.others import OtherProcesses
from ansorpy.measure.program_dataset import MeasuredTask, ProgramDataset
from ansorpy.tasks.record import Recorder, RecordOptions
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul

__all__ = ["QUICK_OPTIONS", "record_by_formula", "small_dataset"]

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
def _formula_machines(*_: object) -> Iterator[FormulaRunner]:
    yield FormulaRunner()


def record_by_formula(monkeypatch: pytest.MonkeyPatch, *busy: float) -> None:
    """Have recordings ask a formula, as if other processes kept *busy* cores during each task."""
    found = chain(busy, repeat(0.0))
    monkeypatch.setattr(recording, "open_machines", _formula_machines)
    monkeypatch.setattr(OtherProcesses, "busy_cores", lambda _: next(found))
