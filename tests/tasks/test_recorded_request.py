"""The record of a run: its request, and every event in order."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.errors import ForeignFile
from ansorpy.graph.alternatives import Alternative, Alternatives
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.rows import EventRow
from ansorpy.measure.records.schema import IN_MEMORY
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU, CPU
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.recorded_request import (
    RecordedPart,
    RunRequest,
    adjusted,
    described,
    differences,
    preset_name,
    read_request,
    request_of,
)  # fmt: skip
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.runners import FormulaRunner
from tests.search.small import EVOLUTION, TREES
from tests.search.tasks import dense_relu, matmul, sampler

TASKS = [
    WeightedTask(task, sampler(task), weight)
    for task, weight in ((matmul(48, 48, 48), 3.0), (dense_relu(16, 32, 64), 1.0))
]


@dataclass(frozen=True)
class Mine:
    share: float = 0.5
    names: tuple[str, ...] = ("a", "b")


def part(value: object) -> RecordedPart:
    found = value if isinstance(value, RecordedPart) else described(value)
    assert isinstance(found, RecordedPart)
    return found


QUICK = TuneOptions(SearchOptions(EVOLUTION), model=TREES)


def test_parts_are_described_by_field() -> None:
    options = replace(TuneOptions(), scheduler=RoundRobin, model=partial(BoostedTrees, None))
    found = part(options)
    assert part(found.settings["scheduler"]).place.endswith("round_robin:RoundRobin")
    search = part(found.settings["search"])
    assert search.settings["seed"] == 0
    assert part(search.settings["strategy"]).place.endswith(":Evolution")
    model = part(found.settings["model"])
    assert model.place.endswith(":BoostedTrees") and model.settings == {"0": None}
    assert part(Mine()).settings["share"] == 0.5
    assert part(part(Mine()).settings["names"]).settings == {"0": "a", "1": "b"}
    assert described(object()) == RecordedPart(place="builtins:object")


def test_what_a_part_is_made_with_is_described_by_class_where_it_is_no_data() -> None:
    def make(*parts: object, **named: object) -> None: ...

    made = part(partial(make, BoostedOptions(8), 3, prior=object(), own=Mine))
    assert list(made.settings) == ["0", "1", "prior", "own"]
    assert part(made.settings["0"]).settings["trees"] == 8 and made.settings["1"] == 3
    assert part(made.settings["prior"]).place == "builtins:object"
    assert part(made.settings["own"]).place == f"{Mine.__module__}:Mine"


@pytest.mark.parametrize("value", [True, 1, 1.0, 0.1, "1", None, (1, (2.5, "x"))])
def test_values_keep_their_types_in_a_file(value: object) -> None:
    recorded = part(Mine(value))  # type: ignore[arg-type]
    back = RecordedPart.model_validate(json.loads(recorded.model_dump_json()))
    assert back == recorded and repr(back) == repr(recorded)


def test_numbers_are_restored_and_other_values_left_alone() -> None:
    @dataclass(frozen=True)
    class Outer:
        inner: Mine = Mine()
        made: object = Mine
        count: int = 3

    given = Outer(Mine(0.25), print, 7)
    assert adjusted(Outer(), described(given)) == Outer(Mine(0.25), Mine, 7)
    assert differences(described(given), described(Outer())) == ["inner.share", "made", "count"]
    assert differences(described(given), described(given)) == []
    assert adjusted(Outer(), None) == Outer()


def test_settings_are_found_by_their_path() -> None:
    found = part(QUICK)
    assert part(found.at("search.strategy")).place.endswith(":Evolution")
    assert found.at("retime") is True
    assert found.at("search.absent") is None and found.at("retime.inner") is None


@pytest.mark.parametrize(
    ("calls", "other"), [((1.0,), 0), ((1.0, 0.0, 0.0), 0), ((1.0, 0.0), 2), ((1.0, 0.0), -1)]
)
def test_networks_must_call_tasks_of_the_run(calls: tuple[float, ...], other: int) -> None:
    regions = (Alternatives((Alternative({"which": "this"}, {other: 1}),)),)
    with Database(IN_MEMORY) as database:
        asked = [(entry.task, "default", entry.weight) for entry in TASKS]
        known = KnownTrials(database)
        good = request_of(asked, Budget(trials=1), QUICK, (TunedNetwork((1.0, 2.0)),), known)
    networks = (TunedNetwork(calls, name="net", regions=regions),)
    body = good.model_copy(update={"networks": networks}).model_dump(mode="json")
    with pytest.raises(ValidationError, match="network 'net' calls tasks that are not in"):
        RunRequest.model_validate(body)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tasks", None, "valid tuple"),
        ("budget", {"trials": -1}, "trials must be positive"),
        ("networks", [{"calls": [1.0], "weight": 0.0}], "weight of a network must be positive"),
    ],
)
def test_a_request_that_no_run_had_is_of_a_foreign_file(
    name: str, value: object, said: str
) -> None:
    with Database(IN_MEMORY) as database:
        known, asked = KnownTrials(database), [(TASKS[0].task, "default", 1.0)]
        body = request_of(asked, Budget(trials=1), QUICK, (), known).model_dump(mode="json")
        text = json.dumps({**body, name: value})
        fields = {"id": 1, "session": 1, "kind": "request", "body": text}
        with pytest.raises(ForeignFile, match=f"run 1 was recorded by an incompatible .*{said}"):
            read_request(EventRow.model_validate(fields), database)


def test_rules_of_the_callers_own_have_no_name() -> None:
    task = matmul(8, 8, 8)
    names = [
        preset_name(SketchSampler(task, preset))
        for preset in (None, CPU, ANSOR_CPU, replace(CPU, sketch=CPU.sketch[1:]))
    ]
    assert names == ["default", "default", "ansor", ""]
    assert preset_name(object()) == ""


def numbers(event: EventRow, name: str) -> list[int]:
    return TypeAdapter(list[int]).validate_python(event.body[name])


def test_a_run_keeps_its_events_in_order(tmp_path: Path) -> None:
    def crashes(state: State, number: int) -> MeasureResult | None:
        return MeasureResult(TrialKind.CRASH, reason="signal 11") if number % 7 == 3 else None

    budget = Budget(trials=24, time_limit_s=1000)
    with Database(tmp_path / "tune.db") as database:
        tune_tasks(TASKS, budget, FormulaRunner(fails=crashes), database=database, options=QUICK)
        events = database.sessions.events(database.sessions.current)
        assert events[0].kind == "request" and events[-1].kind == "found"
        request = RunRequest.model_validate(events[0].body)
        assert request.budget == budget and request.began.results == 0
        for asked, entry in zip(request.tasks, TASKS, strict=True):
            task = asked.task(database)
            assert (task.key, task.target, asked.weight) == (
                entry.task.key, entry.task.target, entry.weight,
            )  # fmt: skip
            assert dag_to_json(task.dag) == dag_to_json(entry.task.dag)
        kinds = [event.kind for event in events]
        assert kinds[:6] == ["request", "clock", "clock", "ask", "tell", "clock"]
        told = [n for event in events if event.kind == "tell" for n in numbers(event, "results")]
        assert told == list(range(1, 25))
        assert {database.record(n).kind for n in told} >= {TrialKind.OK, TrialKind.CRASH}
        retimed = [
            n for event in events if event.kind == "retime" for n in numbers(event, "results")
        ]
        assert kinds.count("retime") == 2 and retimed == list(range(25, 25 + len(retimed)))
        records = [r for t in database.tasks() for r in database.records(t.key)]
        assert sum(record.scale is not None for record in records) == len(retimed) > 0
        named = {record.program for record in records}
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
        events = database.sessions.events(database.sessions.current)
        assert [event.kind for event in events][-3:] == ["tell", "stopped", "found"]
