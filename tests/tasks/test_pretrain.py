"""A run's model learns from some trials of other tasks, those of its own classes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.cost.learner import COLUMNS, SAMPLE_VERSION
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.samples import Samples
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.tasks.pretrain import pretrain, shares
from tests.search.tasks import matmul, scale


class Pupil:
    """Counts the samples it learns from, by task."""

    remembers = (SAMPLE_VERSION, len(COLUMNS))

    def __init__(self) -> None:
        self.taught: dict[str, int] = {}

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        self.taught |= {key: len(samples) for key, samples in earlier.items()}


def record(database: Database, task: Task, trials: int) -> None:
    """Record some trials of *task*, each with a sample."""
    state = State.initial(task.dag)
    features = [np.ones((1, len(COLUMNS)))]
    for _, factor in zip(range(trials), range(1, 1000), strict=False):
        split, _ = state.split(task.dag.ops[-1].name, state.stages[-1].iters[0], (factor,))
        trial = database.start(task, split)
        database.complete(trial, MeasureResult(TrialKind.OK, (1e-3,)))
        ones = np.ones(1)
        database.samples.put([trial.id], Samples(SAMPLE_VERSION, features, ones, ones))


@pytest.mark.parametrize(
    ("most", "expected"), [(100, (9, 7, 6)), (15, (8, 7, 0)), (19, (9, 7, 3)), (0, (0, 0, 0))]
)
def test_tasks_of_the_same_class_come_first(
    tmp_path: Path, most: int, expected: tuple[int, ...]
) -> None:
    new, kin, other = matmul(24, 24, 24), [matmul(8, 24, 12), matmul(9, 4, 5)], scale(64)
    with Database(tmp_path / "a.db") as database:
        database.add_task(new)
        for task, trials in zip((*kin, other, new), (9, 7, 6, 5), strict=True):
            record(database, task, trials)
        pupil = Pupil()
        pretrain(pupil, KnownTrials(database), [new], most)
    assert [pupil.taught.get(t.key, 0) for t in (*kin, other)] == list(expected)
    assert new.key not in pupil.taught


@given(st.dictionaries(st.text(), st.integers(0, 50)), st.integers(0, 200))
def test_shares_are_even_and_use_what_there_is(counts: dict[str, int], most: int) -> None:
    found = shares(counts, most)
    assert found.keys() == counts.keys()
    assert sum(found.values()) == min(most, sum(counts.values()))
    cut = [found[key] for key in counts if found[key] < counts[key]]
    assert max(found.values(), default=0) <= min(cut, default=1000) + 1
