"""Models are compared on the later trials of a recorded run, and the table stands in a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import WeightedTask, tune_tasks
from benchmarks.ranking import main
from tests.search.runners import FormulaRunner
from tests.search.tasks import dense_relu
from tests.tasks.curves import OPTIONS


def recorded(path: Path, trials: int) -> Path:
    task = replace(dense_relu(16, 32, 64), target=Target.host())
    source = WeightedTask(task, SketchSampler(task))
    with Database(path) as database:
        tune_tasks([source], Budget(trials=trials), FormulaRunner(), database=database,
                   options=OPTIONS)  # fmt: skip
    return path


def test_each_weight_of_the_trees_has_its_rows(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- benchmarks.ranking --><!-- end of benchmarks.ranking -->\n")
    database = recorded(tmp_path / "net.db", 32)
    assert main([str(database), "--trust", "0.25", "1", "--into", str(page)]) == 0
    rows = [line.split(" | ") for line in page.read_text().splitlines() if "1 tasks" in line]
    assert {row[0] for row in rows} == {"| net"} and {row[1] for row in rows} == {"0.25", "1"}
    assert [row[3] for row in rows[: len(rows) // 2]] == [row[3] for row in rows[len(rows) // 2 :]]
    assert "analytic" in {row[3] for row in rows}


def test_too_few_trials_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(recorded(tmp_path / "net.db", 8))]) == 2
    assert "no task in" in capsys.readouterr().err
    assert main([str(tmp_path / "none.db")]) == 2
    assert "there is no" in capsys.readouterr().err
