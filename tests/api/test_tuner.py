"""A request from records to programs: the best is taken, nothing is measured twice, stops save."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ansorpy.api.tuner
from ansorpy.api.request import Request
from ansorpy.api.tuner import open_tuner
from ansorpy.errors import ForeignFile, NoValidProgram
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.prove import Claim, Finding, Proof, Verdict
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, reduce_axis
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.probe import calibrate
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.profiler import Activity, Profiler
from ansorpy.rates import Rates
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.outcome import Ending, Tuning
from ansorpy.tasks.predict_many import predicted_of_all
from ansorpy.tasks.trial_plan import Before
from tests import workloads
from tests.measure.definitions import matmul
from tests.run_native import run_native

SMALL = Request.of(
    network=False, effort="none", trials=4, threads=1, strategy="random", cost_model="analytic"
)


def _task(n: int = 24) -> Task:
    return Task(matmul(n), Target.host(), 1, name="mm")


def test_the_best_recorded_program_is_taken(tmp_path: Path) -> None:
    task = _task()
    request = replace(SMALL, db=tmp_path / "t.db")
    with open_tuner(request) as tuner:
        tuning = tuner.tune({task: 1.0})
        assert tuning is not None and not tuning.interrupted
        [chosen] = tuner.choose([task])
        best = tuner.database.best(task.key)
    assert best is not None and chosen.median_s == best.median_s
    assert chosen.built.digest == best.object_digest
    assert str(chosen.state.history) == str(best.state(task.dag).history)


@pytest.mark.parametrize("is_searched", [True, False])
def test_programs_of_another_user_are_measured_before_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_searched: bool
) -> None:
    task, request = _task(), replace(SMALL, db=tmp_path / "t.db")
    with monkeypatch.context() as other:
        other.setenv("ANSORPY_STATE", str(tmp_path / "other"))
        with open_tuner(request) as tuner:
            tuner.tune({task: 1.0})
            theirs = tuner.database.best(task.key)
    assert theirs is not None
    asked = replace(request, budget=Budget(trials=2) if is_searched else None)
    with open_tuner(asked) as tuner:
        assert tuner.database.best(task.key) is None and tuner.recorded_s(task) is None
        tuner.tune({task: 1.0})
        [chosen] = tuner.choose([task])
        mine = tuner.database.records(task.key)
    assert theirs.digest in {record.digest for record in mine}
    assert chosen.median_s in {record.median_s for record in mine}


def _doubled() -> State:
    """A program of twice the product, of the same inputs and results as the task's."""
    a, b, _ = workloads.matmul(24, 40, 17)
    k = reduce_axis(17, name="k")
    c = compute((24, 40), lambda i, j: sum_over(a[i, k] * b[k, j] * 2.0, axis=k), name="C")
    return State.initial([a, b, c])


def test_a_forged_definition_and_forged_code_are_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """A stranger's file says that another computation is the fastest way to compute the task.

    It also says so of the task's own program, with that computation's code.
    """
    task, request = _task(), replace(SMALL, db=tmp_path / "t.db")
    wrong, own = _doubled(), State.initial(task.dag)
    tiled, _ = wrong.split("C", "i", (4,))
    with monkeypatch.context() as other:
        other.setenv("ANSORPY_STATE", str(tmp_path / "other"))
        with Database(tmp_path / "t.db") as database:
            database.add_task(task)
            database.definitions.add_variants(task.key, {"direct": wrong.definition})
            built = build_lowered(lower(wrong), task.target, "kernel")
            database.objects.put(built)
            for seconds, state in ((1e-12, wrong), (2e-12, own)):
                result = MeasureResult(TrialKind.OK, (seconds,), object_digest=built.digest)
                database.complete(database.start(task, state), result)
            result = MeasureResult(TrialKind.CHECKED, object_digest=built.digest)
            database.keep_checked(task, tiled, result)
    with open_tuner(replace(request, budget=None)) as tuner:
        assert len(tuner.database.hints(task.key, -1)) == 3
        [chosen] = tuner.choose([task])
        tried = [tuner.database.lookup(task, state) for state in (wrong, tiled)]
    assert tried == [None, None] and chosen.built.digest != built.digest
    assert str(chosen.state.definition) == str(task.dag) and chosen.median_s != 2e-12
    a, b = rng.random((24, 17), np.float32), rng.random((17, 40), np.float32)
    [found] = run_native(lower(chosen.state), {"A": a, "B": b})
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)


def _refute(database: Database, record: Record) -> None:
    """Plant a proof that the program of *record* reads outside of a buffer."""
    wrong = Finding.refuted(Claim.BOUNDS, "A is read at 24 in dimension 0")
    database.proofs.put(record.definition, record.digest, Proof.of([wrong]))


def test_a_refuted_program_is_recorded_and_the_next_best_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = _task()
    request = replace(SMALL, budget=Budget(trials=6), db=tmp_path / "t.db")
    with open_tuner(request) as tuner:
        tuner.tune({task: 1.0})
        best, second, *_ = tuner.database.fastest(task.key, -1)
        _refute(tuner.database, best)
        [chosen] = tuner.choose([task])
        refuted = tuner.database.lookup(task, best.state(task.dag))
        failures = tuner.database.failures(task.key)
        assert tuner.database.best(task.key) == second
    assert chosen.median_s == second.median_s and chosen.proofs[0].verdict is Verdict.PROVED
    assert refuted is not None and refuted.kind is TrialKind.REFUTED
    assert failures[TrialKind.REFUTED] == (1, "A is read at 24 in dimension 0")
    assert "mm: skipping a program that is refuted: A is read at 24" in caplog.text


def test_where_all_programs_are_refuted_there_is_none(tmp_path: Path) -> None:
    task = _task(7)
    request = Request.of(effort="none", threads=1, db=tmp_path / "t.db")
    with open_tuner(request) as tuner:
        for state in next(
            iter(predicted_of_all([task], options=PredictOptions(seed=request.seed)))
        )[1]:
            trial = tuner.database.start(task, state)
            _refute(
                tuner.database, tuner.database.complete(trial, MeasureResult(TrialKind.OK, (1e-6,)))
            )
        with pytest.raises(NoValidProgram, match="refuted: A is read at 24 in dimension 0"):
            tuner.choose([task])


def test_a_second_run_spends_nothing(tmp_path: Path) -> None:
    request = replace(SMALL, db=tmp_path / "t.db")
    spent = []
    for _ in range(2):
        with open_tuner(request) as tuner:
            tuner.tune({_task(): 1.0})
            spent.append(tuner.database.trials(_task().key))
    assert 0 < spent[0] == spent[1] <= 4


def test_a_default_database_that_has_no_place_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("ANSORPY_DB")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path / "file" / "cache"))
    with (
        pytest.raises(ForeignFile, match="cannot make .*cache, the folder of the def") as error,
        open_tuner(Request.of(effort="none", threads=1, is_quiet=True)),
    ):
        pass
    assert "--db (db= in Python), or a folder with ANSORPY_CACHE" in str(error.value.hint)


def test_records_are_in_the_cache_folder_unless_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = Path(os.environ["ANSORPY_DB"])
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path / "cache"))
    with open_tuner(Request.of(effort="none")) as tuner:
        assert tuner.database.path == named and not capsys.readouterr().err
    monkeypatch.delenv("ANSORPY_DB")
    default = tmp_path / "cache" / "tune.db"
    for said in (f"records: {default}\n", ""):
        with open_tuner(Request.of(effort="none")) as tuner:
            assert tuner.database.path == default and default.exists()
        assert capsys.readouterr().err == said
    assert Request.of(db=tmp_path / "t.db").db == tmp_path / "t.db"


def test_nothing_is_timed_with_effort_none(tmp_path: Path) -> None:
    request = Request.of(effort="none", threads=1, db=tmp_path / "t.db")
    task = _task(7)
    with open_tuner(request) as tuner:
        assert tuner.tune({task: 1.0}) is None
        [chosen] = tuner.choose([task])
        again = tuner.choose([task])[0]
        assert tuner.database.trials(task.key) == 0 and tuner.recorded_s(task) is None
        [hint] = tuner.database.hints(task.key, 4)
    assert chosen.median_s is None and again.median_s is None
    assert chosen.built.digest == again.built.digest == hint.object_digest


def test_a_search_times_a_program_that_was_only_checked(tmp_path: Path) -> None:
    task, request = _task(7), Request.of(effort="none", threads=1, db=tmp_path / "t.db")
    with open_tuner(request) as tuner:
        [chosen] = tuner.choose([task])
    with open_tuner(replace(SMALL, db=tmp_path / "t.db")) as tuner:
        tuner.tune({task: 1.0})
        timed = tuner.database.lookup(task, chosen.state)
        [best] = tuner.choose([task])
    assert timed is not None and timed.kind is TrialKind.OK and timed.median_s is not None
    assert best.median_s is not None and best.median_s <= timed.median_s


def test_measuring_the_machine_has_a_phase_and_is_paid_from_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(target: Target) -> Target:
        time.sleep(0.3)
        return target

    monkeypatch.setattr(ansorpy.api.tuner, "calibrated", measured)
    task, request = _task(), replace(SMALL, budget=Budget(time_limit_s=0.2), db=tmp_path / "t.db")
    with open_tuner(request) as tuner, Profiler() as profiler:
        tuning = tuner.tune({task: 1.0})
        assert tuner.database.trials(task.key) == 0
    assert tuning is not None and tuning.ended is Ending.TIME
    assert profiler.seconds[Activity.CALIBRATE] >= 0.3


def test_the_plan_counts_what_the_database_has(tmp_path: Path) -> None:
    request = replace(SMALL, budget=Budget(trials=8), db=tmp_path / "t.db")
    with open_tuner(replace(request, budget=SMALL.budget)) as tuner:
        tuner.tune({_task(): 1.0})
    with open_tuner(request) as tuner:
        planned = tuner.plan({_task(): 1.0})
        best = tuner.database.best(_task().key)
    assert planned is not None and best is not None and planned.trials == 4
    [only] = planned.tasks
    assert only.before == Before(4, best.median_s)
    with open_tuner(Request.of(effort="none", threads=1)) as tuner:
        assert tuner.plan({_task(): 1.0}) is None


def test_a_stop_keeps_what_was_measured(tmp_path: Path) -> None:
    calls = 0

    def stop_at_third() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    request = replace(SMALL, budget=Budget(trials=16), db=tmp_path / "t.db", stop=stop_at_third)
    reported: list[Tuning] = []
    with open_tuner(request) as tuner, pytest.raises(KeyboardInterrupt):
        tuner.tune({_task(): 1.0}, report=reported.append)
    assert [tuning.interrupted for tuning in reported] == [True]
    with Database(tmp_path / "t.db") as database:
        assert 0 < database.trials(_task().key) < 16


def test_tasks_of_one_key_share_records(tmp_path: Path) -> None:
    request = replace(SMALL, db=tmp_path / "t.db")
    with open_tuner(request) as tuner:
        tuner.tune({_task(): 1.0})
        best = tuner.database.best(_task().key)
    again = replace(_task(), name="of another network")
    with open_tuner(replace(request, budget=None)) as tuner:
        [chosen] = tuner.choose([again])
    assert best is not None and chosen.median_s == best.median_s is not None


def test_searches_read_the_rates_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = Rates(4e9, 2.0, 2.5, 1.0, 60.0, 25.0, 1e11, 3e10, 5e10, 1e-6)
    monkeypatch.setenv("ANSORPY_CALIBRATE", "1")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "measure_rates", lambda: rates)
    task = _task()
    with open_tuner(replace(SMALL, db=tmp_path / "t.db")) as tuner:
        tuning = tuner.tune({task: 1.0})
    assert tuning is not None
    [outcome] = tuning.outcomes
    assert outcome.task.target.rates == rates
    assert outcome.task.key == task.key and outcome.task.target == task.target
