"""Data for cost models, and models given to searches: through the command line."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.cli.main import main
from ansorpy.cost.saved import SavedModel
from ansorpy.evaluation.randomize import random_weights
from ansorpy.measure.program_dataset import read_dataset
from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.datasets import record_by_formula
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES

pytestmark = pytest.mark.timeout(240)


def _network(rows: int | str, columns: int) -> onnx.ModelProto:
    """A matrix product and a ReLU."""
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    nodes = [
        helper.make_node("ConstantOfShape", ["w_shape"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "small",
        [info("x", f32, [rows, 24])],
        [info("y", f32, [rows, columns])],
        [helper.make_tensor("w_shape", i64, [2], [24, columns])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    return random_weights(model, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks, records of the first with a formula's seconds, and the model they teach."""
    folder = tmp_path_factory.mktemp("learned")
    onnx.save(_network(40, 48), folder / "a.onnx")
    onnx.save(_network(33, 70), folder / "b.onnx")
    [task] = open_project(folder / "a.onnx", Request.of(effort="none", threads=1)).tasks
    entries = [WeightedTask(task, SketchSampler(task))]
    options = TuneOptions(SearchOptions(EVOLUTION), model=TREES)
    with Database(folder / "a.db") as database:
        tune_tasks(entries, Budget(trials=26), FormulaRunner(), database, options=options)
    assert main(["dataset", "train", str(folder / "a.db"), "-o", str(folder / "m.txt")]) == 0
    return folder


def test_it_says_what_it_learnt_from_and_how_well_it_ranks(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["dataset", "train", str(folder / "a.db"), "-o", str(tmp_path / "m.txt")]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert f"trained on 26 programs of 1 tasks for {Target.host().family}" in out
    assert "recall of 5" in out and "loaded, then first 8" in out
    assert (tmp_path / "m.txt").read_bytes() == (folder / "m.txt").read_bytes()
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["programs"], facts["tasks"]) == (26, 1)
    assert facts["digest"] == SavedModel.read(folder / "m.txt").digest
    assert {row["model"] for row in facts["held_out"]} >= {"analytic", "loaded, then first 8"}
    assert main([*command, "--seed", "7"]) == 0
    assert (tmp_path / "m.txt").read_bytes() != (folder / "m.txt").read_bytes()


def test_a_dataset_is_recorded_and_models_are_evaluated_on_it(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record_by_formula(monkeypatch)
    path = str(tmp_path / "d.npz")
    record = ["dataset", "record", *(str(folder / name) for name in ("a.onnx", "b.onnx"))]
    assert main([*record, "--programs", "8", "--threads", "1", "-o", path]) == 0
    out = capsys.readouterr().out
    assert f"{path}: 16 programs of 2 tasks" in out and "1 tasks, 8 programs; " in out
    evaluate = ["dataset", "eval", path, "--split", "within_task", "--cost-model", "analytic"]
    assert main(evaluate) == 0
    assert "split within_task: means over the tasks held out" in capsys.readouterr().out
    assert main([*evaluate, "--json", "-q"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in rows] == ["analytic", "analytic"] and "pairs" in rows[0]
    assert main(["dataset", "train", path, "-o", str(tmp_path / "m.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["programs"] == 16
    train = ["dataset", "train", path, "--cost-model"]
    for name, file, message in (
        ("static_linear", "w.json", "too few to learn from"),
        ("rf", "w.npz", "has nothing to save"),
        ("rf", "w.txt", "has nothing to save"),
        ("tlp", "w.txt", f"as arrays\nhint: write: -o {tmp_path / 'w.npz'}\n"),
        ("absent", "w.npz", 'unknown cost model "absent"'),
    ):
        assert main([*train, name, "-o", str(tmp_path / file)]) == 2
        assert message in capsys.readouterr().err
    two = [*train, "boosted", "--cost-model", "tlp", "-o", str(tmp_path / "w.npz")]
    assert main(two) == 2
    assert "one model is trained at a time, not boosted, tlp" in capsys.readouterr().err
    assert main(["dataset", "eval", path, "--split", "by_target"]) == 2
    assert "split by_task" in capsys.readouterr().err


def test_sizes_that_a_network_leaves_open_are_options_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record_by_formula(monkeypatch)
    onnx.save(_network(40, 48), tmp_path / "fixed.onnx")
    onnx.save(_network("rows", 48), tmp_path / "open.onnx")
    path = str(tmp_path / "d.npz")
    options = ["--programs", "8", "--threads", "1", "-o", path]
    assert main(["dataset", "record", str(tmp_path / "open.onnx"), *options, "--dim", "b=4"]) == 2
    assert "no dynamic dimension named b" in capsys.readouterr().err
    for name, sizes, said in (
        ("fixed", [], "8 programs of 1 tasks"),
        ("open", ["--dim", "rows=40"], "8 programs of 1 tasks"),
        ("open", ["--shape", "x=7x24"], "16 programs of 2 tasks"),
    ):
        assert main(["dataset", "record", str(tmp_path / f"{name}.onnx"), *options, *sizes]) == 0
        assert f"{path}: {said}" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_recording_and_the_same_command_goes_on(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    record_by_formula(monkeypatch)
    measure, sent = FormulaRunner.measure, list[int]()

    def signalled(self: FormulaRunner, *given: Any, **options: Any) -> Any:
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return measure(self, *given, **options)

    monkeypatch.setattr(FormulaRunner, "measure", signalled)
    for name, columns in (("a", 48), ("b", 70)):
        onnx.save(_network(40, columns), tmp_path / f"{name}.onnx")
    path = tmp_path / "d.npz"
    record = ["dataset", "record", *(str(tmp_path / name) for name in ("a.onnx", "b.onnx"))]
    record += ["--programs", "8", "--threads", "1", "-o", str(path)]
    assert main(record) == 130
    said = capfd.readouterr().err
    assert "finishing this batch" in said and f"the programs so far are in {path}" in said
    assert "hint: the same command continues" in said
    assert len(read_dataset(path).tasks) == 1
    assert main(record) == 0
    assert f"{path}: 16 programs of 2 tasks" in capfd.readouterr().out


def test_a_search_begins_with_it_and_is_replayed_without_the_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, db = (folder / "m.txt").read_text(), str(tmp_path / "b.db")
    (tmp_path / "m.txt").write_text(text)
    arguments = ["--trials", "6", "--threads", "1", "--db", db]
    given = ["--cost-model", str(tmp_path / "m.txt")]
    assert main(["tune", str(folder / "b.onnx"), *arguments, *given]) == 0
    (tmp_path / "m.txt").unlink()
    assert main(["db", "replay", "--db", db]) == 0
    assert "same history, 6 trials" in capsys.readouterr().out
    with Database(db) as database:
        [request] = [e for e in database.sessions.events(1) if e.kind == "request"]
        options = request.body["options"]
        assert isinstance(options, dict)
        digest = options["settings"]["model"]["settings"]["digest"]
        assert database.models.get(digest) == text


def test_programs_are_chosen_with_it_when_nothing_is_measured(folder: Path, tmp_path: Path) -> None:
    command = ["compile", str(folder / "b.onnx"), "-o", str(tmp_path / "b.so"), "--effort", "none",
               "--threads", "1", "--db", str(tmp_path / "b.db")]  # fmt: skip
    assert main([*command, "--cost-model", str(folder / "m.txt")]) == 0
    assert (tmp_path / "b.so").exists()


def test_files_that_are_no_model_are_refused_before_anything_starts(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("hello")
    head, _, trees = (folder / "m.txt").read_text().partition("\n")
    old = json.dumps({**json.loads(head), "features": "0123"})
    (tmp_path / "old").write_text(f"{old}\n{trees}")
    (tmp_path / "cut").write_text(f"{head}\n{trees[:-9]}")
    for name, code, message in (
        ("text", 6, "is not a cost model written by ansorpy"),
        ("old", 6, "was trained with features or an analytic model that differ"),
        ("cut", 6, "is damaged"),
        ("absent", 2, 'unknown cost model "'),
    ):
        command = ["tune", str(folder / "b.onnx"), "--db", str(tmp_path / "b.db")]
        assert main([*command, "--cost-model", str(tmp_path / name)]) == code
        error = capsys.readouterr().err
        assert message in error and "hint: " in error and "Traceback" not in error
    assert not (tmp_path / "b.db").exists()


def test_a_model_of_other_machines_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "cortex-a76" if "x86" in Target.host().triple else "x86-64-v3"
    command = ["compile", str(folder / "b.onnx"), "-o", str(tmp_path / "b.so"), "--effort", "none",
               "--target", other, "--cost-model", str(folder / "m.txt")]  # fmt: skip
    assert main(command) == 2
    assert "was trained on programs for" in capsys.readouterr().err


def test_nothing_to_learn_from_and_wrong_words(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(tmp_path / "empty.db"):
        pass
    db, out, train = str(folder / "a.db"), str(tmp_path / "m.txt"), ["dataset", "train"]
    for command, code, message in (
        ([*train, str(tmp_path / "empty.db"), "-o", out], 2, "has 0 programs for"),
        ([*train, db, "-o", out, "--target", "sm_90"], 2, "name such a target"),
        ([*train, db], 2, "needs data and a file"),
        ([*train, "-o", out], 2, "needs data and a file"),
        ([*train, db, "-o", str(tmp_path / "no" / "m")], 2, "cannot write"),
        ([*train, db, "-o", db], 2, f"{db} would replace {db}"),
        ([*train, db, db, "-o", out], 2, "other files are named beside it"),
        ([*train, str(tmp_path / "absent.db"), "-o", out], 6, "cannot read"),
        ([*train, str(folder / "m.txt"), "-o", out], 6, "is not a dataset"),
        (["db", "tasks", "--db", db, "-o", out], 2, "is for a repair"),
        (["dataset", "eval"], 2, "an evaluation needs data"),
        (["dataset", "record", "--random", "1"], 2, "a recording needs a file"),
        (["dataset", "record", "-o", out], 2, "nothing to record"),
    ):
        assert main(command) == code
        assert message in capsys.readouterr().err
    assert not (tmp_path / "m.txt").exists()
