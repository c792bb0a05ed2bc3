"""What models learn from survives in the database, checked when it is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import ForeignFile
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.samples import Samples
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled

WIDTH = 5


def kept(path: Path, rng: np.random.Generator) -> tuple[str, list[int], Samples]:
    """A database with four trials of one task, one of them failed, and their samples."""
    dag = matmul()
    task, numbers = task_of(dag), []
    results = [MeasureResult(TrialKind.OK, (n * 1e-3,)) for n in (1, 2, 3)]
    results.append(MeasureResult(TrialKind.CRASH, reason="signal 11"))
    with Database(path) as database:
        for factor, result in enumerate(results, 1):
            record = database.start(task, tiled(dag, factor))
            database.complete(record, result)
            numbers.append(record.id)
        features = [rng.standard_normal((1 + n % 3, WIDTH)) for n in range(4)]
        prior_s = rng.random(4) + 0.1
        samples = Samples("v1", features, prior_s, np.array([1e-3, 2e-3, 3e-3, np.inf]))
        database.samples.put(numbers, samples)
    return task.key, numbers, samples


def test_samples_come_back_with_the_times_of_their_trials(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    key, numbers, samples = kept(tmp_path / "a.db", rng)
    with Database(tmp_path / "a.db") as database:
        found = database.samples.of([key, "another"], "v1", WIDTH)
        assert list(found) == [key]
        for one, other in zip(found[key].features, samples.features, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert found[key].prior_s.tolist() == samples.prior_s.tolist()
        assert found[key].seconds.tolist() == samples.seconds.tolist()
        assert database.samples.known(key, "v1") == set(numbers)
        faster = MeasureResult(TrialKind.OK, (5e-4,))
        database.complete(database.records(key)[0], faster)
        assert database.samples.of([key], "v1", WIDTH)[key].seconds[0] == 5e-4


def test_other_versions_and_other_machines_are_not_mixed_in(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    key, _, _ = kept(tmp_path / "a.db", rng)
    dag = matmul()
    with Database(tmp_path / "a.db") as database:
        assert database.samples.of([key], "v2", WIDTH) == {}
        assert database.samples.known(key, "v2") == set()
        others = [
            task_of(matmul(k=19)),
            task_of(dag, 2),
            task_of(dag, reuse_distance_bytes=1 << 27),
        ]
        for task in others:
            record = database.start(task, tiled(task.dag, 2))
            database.complete(record, MeasureResult(TrialKind.OK, (1e-3,)))
            one = Samples("v1", [np.ones((1, WIDTH))], np.ones(1), np.ones(1))
            database.samples.put([record.id], one)
        alike = database.samples.tasks_like(task_of(dag), "v1")
        expected = {(key, 4), (others[0].key, 1), (others[2].key, 1)}
        assert {(t.key, t.samples) for t in alike} == expected
        assert [t.class_key for t in alike if t.key == key] == [task_of(dag).class_key]
        assert database.samples.tasks_like(task_of(dag), "v2") == []


@pytest.mark.parametrize("most", range(7))
def test_some_of_many_samples_are_taken_at_even_steps(
    tmp_path: Path, rng: np.random.Generator, most: int
) -> None:
    key, _, samples = kept(tmp_path / "a.db", rng)
    with Database(tmp_path / "a.db") as database:
        found = database.samples.of([key], "v1", WIDTH, {key: most})
    expected = {0: [], 1: [3], 2: [1, 3], 3: [1, 2, 3]}.get(most, [0, 1, 2, 3])
    if not expected:
        assert found == {}
    else:
        assert found[key].prior_s.tolist() == samples.prior_s[expected].tolist()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE samples SET features = x'0011' WHERE trial = 1",
        "UPDATE samples SET features = 'text' WHERE trial = 1",
        "UPDATE samples SET features = x'' WHERE trial = 1",
        "UPDATE samples SET features = zeroblob(20) || x'0000c07f' WHERE trial = 1",
        "UPDATE samples SET prior_s = -1 WHERE trial = 1",
        "UPDATE samples SET prior_s = 'soon' WHERE trial = 1",
        "DELETE FROM samples WHERE trial = 1",
    ],
)
def test_damaged_samples_are_left_out(
    tmp_path: Path, rng: np.random.Generator, damage: str
) -> None:
    key, _, samples = kept(tmp_path / "a.db", rng)
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute(damage)
    raw.close()
    with Database(tmp_path / "a.db") as database:
        found = database.samples.of([key], "v1", WIDTH)[key]
        assert found.prior_s.tolist() == samples.prior_s.tolist()[1:]


def test_a_write_that_fails_holds_back_no_later_one(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    _, numbers, samples = kept(tmp_path / "a.db", rng)
    with Database(tmp_path / "a.db") as database:
        with pytest.raises(ForeignFile, match="FOREIGN KEY"):
            database.samples.put([999], samples.rows([0]))
        database.samples.put(numbers, samples)
        database.sessions.log("note", {})
        session = database.sessions.current
    with Database(tmp_path / "a.db") as database:
        assert [event.kind for event in database.sessions.events(session)] == ["note"]


def test_similar_tasks_and_the_names_of_definitions(tmp_path: Path) -> None:
    dag, other = matmul(), matmul(k=19)
    with Database(tmp_path / "a.db") as database:
        for task in (task_of(dag), task_of(other), task_of(dag, threads=2)):
            database.add_task(task)
            database.definitions.add_variants(task.key, {"direct": task.dag, "other": matmul(k=3)})
        similar = {row.key for row in database.similar(task_of(dag))}
        assert similar == {task_of(other).key, task_of(dag, threads=2).key}
        names = database.definitions.variants(task_of(dag).key)
        assert names == {
            database.definitions.identify(dag): "direct",
            database.definitions.identify(matmul(k=3)): "other",
        }
