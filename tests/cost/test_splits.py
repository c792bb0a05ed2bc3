"""Splits of datasets: what is held out is not learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.split_kinds import Split
from ansorpy.cost.splits import split
from ansorpy.errors import UsageError
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import ProgramDataset
from tests.datasets import small_dataset


def _rows(dataset: ProgramDataset) -> set[tuple[str, str, bytes]]:
    return {
        (key, sketch.steps, row.tobytes())
        for key, each in dataset.tasks.items()
        for sketch in each.sketches
        for row in sketch.table
    }


def _with_threads() -> ProgramDataset:
    """Each task of the dataset with its own number of threads and with one more."""
    dataset = small_dataset()
    for each in list(dataset.tasks.values()):
        dataset.add(replace(each, task=replace(each.task, threads=each.task.threads + 1)))
    return dataset


@pytest.mark.parametrize("how", Split)
def test_nothing_is_lost_and_nothing_is_in_both_parts(how: Split) -> None:
    dataset = _with_threads()
    learned, held = split(dataset, how, seed=3)
    assert len(learned) and len(held)
    assert _rows(learned) | _rows(held) == _rows(dataset)
    assert not _rows(learned) & _rows(held)
    again = split(dataset, how, seed=3)
    assert [_rows(part) for part in again] == [_rows(learned), _rows(held)]


def test_within_tasks_each_has_its_share() -> None:
    learned, held = split(_with_threads(), Split.WITHIN_TASK, 0.25)
    assert [len(each) for each in held.tasks.values()] == [3] * 6
    assert [len(each) for each in learned.tasks.values()] == [9] * 6
    for part in (learned, held):
        for each in part.tasks.values():
            assert np.isfinite(each.seconds).all()


def test_by_task_no_definition_is_in_both_parts_under_other_conditions() -> None:
    learned, held = (
        {structural_hash(each.task.dag) for each in part.tasks.values()}
        for part in split(_with_threads(), Split.BY_TASK)
    )
    assert not learned & held and len(held) == 1


def test_by_target_one_is_held_out() -> None:
    learned, held = split(_with_threads(), Split.BY_TARGET)
    assert not {e.task.threads for e in learned.tasks.values()} & {
        e.task.threads for e in held.tasks.values()
    }
    with pytest.raises(UsageError, match="one target and number of threads"):
        split(small_dataset(), Split.BY_TARGET)
