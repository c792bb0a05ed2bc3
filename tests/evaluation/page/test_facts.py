"""The facts of a page agree with the database, and are JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.metrics import rank_correlation
from ansorpy.errors import ForeignFile
from ansorpy.evaluation.page.facts import Extras, facts_of
from ansorpy.evaluation.page.ranking import ranked_rounds
from ansorpy.evaluation.page.recorded_run import recorded_run
from ansorpy.evaluation.page.results import read_bench, read_verified
from ansorpy.measure.records.database import Database
from tests.evaluation.page.conftest import TASKS

BENCH = {
    "model": "net", "threads": 2, "machine": {"cpu": "a CPU", "cores": 2}, "kernels_ms": 0.9,
    "engines": {
        name: {"median_ms": ms, "min_ms": ms, "bursts_ms": [ms, 2 * ms], "version": "1"}
        for name, ms in (("ansorpy", 1.0), ("onnxruntime", 1.5))
    },
    "calls": [{"name": "c", "inside_s": 1e-3, "alone_s": None, "least_s": 1e-4, "bound": "memory"}],
}  # fmt: skip
VERIFIED = {
    "model": "net", "against": "onnxruntime", "ok": True,
    "outputs": [{"name": "y", "error": 1e-6, "largest": 1.0, "tolerance": 2e-5, "ok": True}],
}  # fmt: skip


def test_facts_of_the_tasks(database: Database) -> None:
    run = recorded_run(database)
    extras = Extras(bench=read_bench(BENCH), verified=read_verified(VERIFIED))
    facts = json.loads(json.dumps(facts_of(run, extras, database), allow_nan=False))
    assert facts["title"] == "a </script> network"
    for fact, task in zip(facts["tasks"], TASKS, strict=True):
        kinds = database.failures(task.key)
        failed = {f["kind"]: f["trials"] for f in fact["failures"]}
        assert failed == {k.value: n for k, (n, _) in kinds.items() if k.value != "slow"}
        assert fact["got"] + fact["earlier"] == database.trials(task.key)
        best = database.best(task.key)
        assert best is not None and fact["best_s"] == best.median_s
        state = database.state(best)
        assert state is not None and fact["program"]["nest"] == state.text()
    made = sum(fact["got"] for fact in facts["tasks"])
    assert made == 15 and abs(sum(fact["planned"] for fact in facts["tasks"]) - made) <= len(TASKS)
    assert facts["bench"]["engines"]["onnxruntime"]["median_ms"] == 1.5
    assert facts["verified"]["outputs"][0]["error"] == 1e-6
    assert facts["memory"] is None


def test_scores_were_recorded_with_the_programs(database: Database) -> None:
    run = recorded_run(database)
    rounds = ranked_rounds(run)
    assert rounds
    for ranked in rounds:
        predicted = np.array([p.predicted_s for p in ranked.programs])
        measured = np.array([p.measured_s for p in ranked.programs])
        if ranked.correlation is not None:
            assert ranked.correlation == rank_correlation(predicted, measured)
        else:
            assert np.isnan(rank_correlation(predicted, measured))


def test_scores_that_are_none(database: Database) -> None:
    run = recorded_run(database)
    refit = next(event for event in run.events if event.kind == "refit")
    without = refit.model_copy(update={"body": {"task": "t"}})
    assert ranked_rounds(replace(run, events=(without,))) == []
    wrong = refit.model_copy(update={"body": {"task": "t", "scores": "high"}})
    with pytest.raises(ForeignFile, match="has no scores of programs"):
        ranked_rounds(replace(run, events=(wrong,)))
