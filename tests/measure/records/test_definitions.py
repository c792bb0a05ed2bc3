"""A definition is read once, however many trials are of it, and nobody's DAG is kept alive."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

import ansorpy.measure.records.definitions as definitions
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.text.serialize import dag_from_json
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled


def test_a_definition_is_parsed_once_for_all_its_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[ComputeDAG] = []

    def counted(text: str) -> ComputeDAG:
        parsed.append(dag_from_json(text))
        return parsed[-1]

    monkeypatch.setattr(definitions, "dag_from_json", counted)
    dag, other = matmul(), matmul(n=7)
    with Database(tmp_path / "t.db") as database:
        for factor in range(1, 25):
            for each in (dag, other):
                made = database.start(task_of(each), tiled(each, factor))
                database.complete(made, MeasureResult(TrialKind.OK, (1.0,)))
    with Database(tmp_path / "t.db") as database:
        for each in (dag, other):
            states = [database.state(r) for r in database.records(task_of(each).key)]
            assert len(states) == 24
            assert len({state.definition for state in states if state is not None}) == 1
    assert len(parsed) == 2


def test_a_definition_at_hand_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    dag = matmul()
    with Database(tmp_path / "t.db") as database:
        made = database.start(task_of(dag), tiled(dag, 2))
        database.complete(made, MeasureResult(TrialKind.OK, (1.0,)))
    monkeypatch.setattr(definitions, "dag_from_json", lambda _: pytest.fail("it was read"))
    equal = matmul()
    with Database(tmp_path / "t.db") as database:
        database.definitions.keep(equal)
        [record] = database.records(task_of(equal).key)
        state = database.state(record)
    assert state is not None and state.definition is equal


def test_a_definition_asked_for_by_many_is_not_kept_alive(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        dags = [matmul(n=n) for n in range(3, 9)]
        known = [database.definitions.identify(dag) for dag in dags]
        assert known == [database.definitions.identify(dag) for dag in dags]
        left = [weakref.ref(dag) for dag in dags]
        del dags
        gc.collect()
        assert [ref() for ref in left] == [None] * 6


def test_few_definitions_that_were_read_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "KEPT", 2)
    with Database(tmp_path / "t.db") as database:
        names = [database.definitions.put(matmul(n=n)) for n in range(3, 7)]
        read = [weakref.ref(database.definitions.get(name)) for name in names]
        gc.collect()
        assert [ref() is None for ref in read] == [True, True, False, False]
