"""What a run keeps of itself: its request, and every event in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.measure.database import Database
from ansorpy.measure.definitions import definition_json
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.presets import ANSOR_CPU, CPU
from ansorpy.rules.structure import StructureSampler
from ansorpy.schedule.state import State
from ansorpy.search.driver import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.recorded import RunRequest, described, ranges, space_name, unranged
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul

TASKS = [
    WeightedTask(task, StructureSampler(task), weight)
    for task, weight in ((matmul(48, 48, 48), 3.0), (dense_relu(16, 32, 64), 1.0))
]


@dataclass(frozen=True)
class Mine:
    share: float = 0.5


QUICK = TuneOptions(SearchOptions(EVOLUTION), model=TREES)


@pytest.mark.parametrize("numbers", [[], [3], [1, 2, 3], [1, 3, 4, 9], [2, 4, 6, 7, 8]])
def test_ranges_come_back(numbers: list[int]) -> None:
    back = [n for first, last in unranged(ranges(numbers)) for n in range(first, last + 1)]
    assert back == numbers


def test_parts_are_described_by_field() -> None:
    options = replace(TuneOptions(), scheduler=RoundRobin(), model=partial(BoostedTrees, None))
    found = described(options)
    assert found["scheduler"].endswith("round_robin:RoundRobin")
    assert found["search.seed"] == "0" and found["search.strategy"].endswith(":Evolution")
    assert found["model"].endswith(":BoostedTrees, None")
    assert described(Mine(), "part")["part.share"] == "0.5"
    assert described(object(), "part") == {"part": "builtins:object"}


def test_what_a_part_is_made_with_is_described_by_class_where_it_has_no_text() -> None:
    options = BoostedOptions(8)

    def make(*parts: object, **named: object) -> None: ...

    made = partial(make, options, 3, prior=object(), own=Mine)
    [text] = described(made, "model").values()
    assert repr(options) in text and ", 3, " in text
    assert "prior=builtins:object" in text and "own=" + Mine.__module__ + ":Mine" in text
    assert "0x" not in text


def test_rules_of_the_callers_own_have_no_name() -> None:
    task = matmul(8, 8, 8)
    names = [
        space_name(StructureSampler(task, preset))
        for preset in (None, CPU, ANSOR_CPU, replace(CPU, sketch=CPU.sketch[1:]))
    ]
    assert names == ["default", "default", "ansor", ""]
    assert space_name(object()) == ""


def test_a_run_keeps_its_events_in_order(tmp_path: Path) -> None:
    def crashes(state: State, number: int) -> MeasureResult | None:
        return MeasureResult(TrialKind.CRASH, reason="signal 11") if number % 7 == 3 else None

    budget = Budget(trials=24, time_limit_s=1000)
    with Database(tmp_path / "tune.db") as database:
        tune_tasks(TASKS, budget, FormulaRunner(fails=crashes), database=database, options=QUICK)
        events = [e for e in database.events(database.session) if e.kind != "retimed"]
        assert events[0].kind == "request" and events[-1].kind == "found"
        request = RunRequest.model_validate(events[0].body)
        assert request.budget == budget and request.known["trials"] == ""
        for asked, entry in zip(request.tasks, TASKS, strict=True):
            task = asked.task(database)
            assert (task.key, task.target, asked.weight) == (
                entry.task.key, entry.task.target, entry.weight,
            )  # fmt: skip
            assert definition_json(task.dag) == definition_json(entry.task.dag)
        kinds = [event.kind for event in events]
        assert kinds[:5] == ["request", "clock", "ask", "tell", "ask"]
        told = [event.body["told"] for event in events if event.kind == "tell"]
        assert sum(len(t) for t in told if isinstance(t, list)) == 24
        assert "'crash', [], False" in str(told)
        assert kinds.count("retime") == 2
        records = [r for t in database.tasks() for r in database.records(t.key)]
        named = {f"{r.definition[:8]}-{r.digest[:16]}" for r in records}
        for event in events:
            if event.kind == "ask":
                assert isinstance(event.body["programs"], list)
                assert set(event.body["programs"]) <= named


def test_a_stopped_run_says_so(tmp_path: Path) -> None:
    def stop(state: State, number: int) -> MeasureResult | None:
        if number == 9:
            raise KeyboardInterrupt
        return None

    with Database(tmp_path / "tune.db") as database:
        tune_tasks(
            TASKS, Budget(trials=64), FormulaRunner(fails=stop), database=database, options=QUICK
        )
        events = database.events(database.session)
        assert [event.kind for event in events][-3:] == ["tell", "stopped", "found"]
