"""Recording datasets: what was recorded stays, and a recording goes on where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from ansorpy.api import dataset as recording
from ansorpy.api import train_model as training
from ansorpy.api.dataset import RecordProgress, Sources, random_tasks, record_dataset
from ansorpy.api.request import Request
from ansorpy.api.train_model import evaluate_models, fit_weights, train_model
from ansorpy.cost.split_kinds import Split
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.probe.others import OtherProcesses
from ansorpy.measure.program_dataset import read_dataset, write_dataset
from ansorpy.target import Target
from tests.datasets import QUICK_OPTIONS, record_by_formula, small_dataset
from tests.search.tasks import dense_relu, matmul

SOURCES = [("a", matmul(24, 40, 36)), ("b", dense_relu(17, 40, 20)), ("b", matmul(64, 32, 16))]


@pytest.fixture(autouse=True)
def formula(monkeypatch: pytest.MonkeyPatch) -> None:
    record_by_formula(monkeypatch)
    monkeypatch.setattr(recording, "calibrated", lambda target: target)


def _recorded(path: Path, sources: Sources, **options: Any) -> list[str]:
    said: list[RecordProgress] = []
    target = SOURCES[0][1].target
    record_dataset(path, sources, target, QUICK_OPTIONS, listener=said.append, **options)
    return [str(progress) for progress in said]


def test_tasks_are_recorded_once_and_later_ones_are_added(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    [said] = _recorded(path, [*SOURCES[:1], *SOURCES[:1]])
    assert said.startswith("1 tasks, 12 programs; a: ") and said.endswith("programs/s")
    first = read_dataset(path)
    assert len(_recorded(path, SOURCES)) == 2
    second = read_dataset(path)
    assert [each.source for each in second.tasks.values()] == ["a", "b", "b"]
    for key, each in first.tasks.items():
        np.testing.assert_array_equal(second.tasks[key].seconds, each.seconds)
    assert _recorded(path, SOURCES) == []


def test_an_interrupted_recording_is_kept(tmp_path: Path) -> None:
    def interrupted() -> Iterator[tuple[str, Task]]:
        yield from SOURCES
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_dataset(tmp_path / "d.npz", interrupted(), SOURCES[0][1].target, QUICK_OPTIONS)
    assert len(read_dataset(tmp_path / "d.npz").tasks) == 1


def test_a_recording_that_is_stopped_keeps_what_it_found(tmp_path: Path) -> None:
    path, target = tmp_path / "d.npz", SOURCES[0][1].target
    said: list[RecordProgress] = []
    for _ in range(2):  # the second is stopped before it begins
        record_dataset(
            path, SOURCES, target, QUICK_OPTIONS, listener=said.append,
            is_stopped=lambda: bool(said),
        )  # fmt: skip
        assert len(said) == len(read_dataset(path).tasks) == 1
    assert len(_recorded(path, SOURCES)) == 2


def test_a_time_limit_ends_it(tmp_path: Path) -> None:
    assert len(_recorded(tmp_path / "d.npz", SOURCES, time_limit_s=0.0)) == 1


def test_tasks_that_shared_the_cores_are_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = OtherProcesses().cores
    record_by_formula(monkeypatch, cores - 1 + 0.2, cores - 1 + 0.8)
    path, sources = tmp_path / "d.npz", [(name, replace(t, threads=1)) for name, t in SOURCES[:2]]
    kept, refused = _recorded(path, sources)
    assert kept.endswith("programs/s") and "shared 0.8 cores with other processes" in refused
    assert [each.source for each in read_dataset(path).tasks.values()] == ["a"]
    assert len(_recorded(path, sources)) == 1
    assert [each.source for each in read_dataset(path).tasks.values()] == ["a", "b"]


def test_a_skipped_task_does_not_hide_what_ran_beside_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = OtherProcesses().cores
    record_by_formula(monkeypatch, cores - 1 + 0.8)
    given = [*SOURCES[:2], ("c", matmul(2048, 2048, 2048))]
    skipped, refused, kept = _recorded(
        tmp_path / "d.npz", [(name, replace(task, threads=1)) for name, task in given]
    )
    assert skipped.endswith("nothing: its programs would take too long")
    assert "shared 0.8 cores with other processes" in refused and kept.endswith("programs/s")


def test_a_file_that_is_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "d.npz").write_text("mine")
    with pytest.raises(ForeignFile, match="is not a dataset"):
        _recorded(tmp_path / "d.npz", SOURCES)
    assert (tmp_path / "d.npz").read_text() == "mine"


def test_a_file_takes_one_recording_at_a_time(tmp_path: Path) -> None:
    def beside_another() -> Iterator[tuple[str, Task]]:
        for path in (tmp_path / "d.npz", tmp_path / "no" / ".." / "d.npz"):
            with pytest.raises(UsageError, match=r"another process is writing .*d\.npz"):
                _recorded(path, SOURCES)
        yield SOURCES[1]

    (tmp_path / "no").mkdir()
    assert len(_recorded(tmp_path / "d.npz", beside_another())) == 1
    assert len(_recorded(tmp_path / "d.npz", SOURCES)) == 2


def test_random_tasks_depend_on_the_seed() -> None:
    keys = [
        [task.key for _, task in random_tasks(1, Request.of(effort="none", seed=seed))]
        for seed in (4, 4, 2)
    ]
    assert keys[0] == keys[1] != keys[2]


def test_models_learn_from_one_part_and_are_evaluated_on_the_other(tmp_path: Path) -> None:
    dataset = small_dataset()
    said: list[str] = []
    (tmp_path / "m.txt").write_text(train_model(dataset).model.text())
    models = ["analytic", "random", "boosted", str(tmp_path / "m.txt")]
    found = evaluate_models(models, dataset, Split.WITHIN_TASK, listener=said.append)
    assert [each.model for each in found[::3]] == models
    assert {each.programs for each in found} == {2}
    assert said[:2] == ["analytic: learns from 30 programs", "analytic: ranks 6 programs"]
    assert said[-1] == f"{models[-1]}: ranks 6 programs"  # it has learned already
    with pytest.raises(UsageError, match='unknown cost model "absent"'):
        evaluate_models(["absent"], dataset, Split.BY_TASK)


def test_training_takes_the_programs_of_one_family(tmp_path: Path) -> None:
    dataset = small_dataset()
    write_dataset(dataset, tmp_path / "d.npz")
    found = train_model(read_dataset(tmp_path / "d.npz"))
    assert (found.model.programs, found.model.tasks, found.held_out) == (36, 3, ())
    with pytest.raises(UsageError, match="the dataset has 0 programs for cuda") as refused:
        train_model(dataset, Target.parse("sm_90"))
    assert "name such a target with --target" in (refused.value.hint or "")


def test_the_seed_of_training_and_of_splits_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def asked_split(*args: object, seed: int) -> NoReturn:
        asked.append(seed)
        raise InterruptedError

    monkeypatch.setattr(training, "split", asked_split)
    monkeypatch.setenv("ANSORPY_SEED", "7")
    for seed in (None, 0):
        with pytest.raises(InterruptedError):
            evaluate_models([], small_dataset(), Split.BY_TASK, seed=seed)
    assert asked == [7, 0]
    monkeypatch.setenv("ANSORPY_SEED", "-1")
    with pytest.raises(UsageError, match="ANSORPY_SEED='-1' is not a seed"):
        train_model(small_dataset())


def test_weights_and_files_of_them_are_models_too(tmp_path: Path) -> None:
    found = fit_weights(small_dataset())
    assert (found.programs, found.tasks) == (36, 3) and found.correlation > 0.3
    (tmp_path / "w.json").write_text(found.model.text())
    said: list[str] = []
    name = str(tmp_path / "w.json")
    evaluate_models([name], small_dataset(), Split.WITHIN_TASK, listener=said.append)
    assert said == [f"{name}: ranks 6 programs"]
