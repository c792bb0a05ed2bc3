"""The conditions of a task are those it has, and survive a file."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from pydantic import ValidationError

from ansorpy.ir.task import Task
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.target import Target
from tests.search.tasks import matmul

TASK = Task(matmul(8, 4, 2).dag, Target.parse("x86-64-v3"), 3, "strict", 1 << 20, "mine")


def test_they_are_all_of_a_task_but_its_definition() -> None:
    assert {*TaskConditions.model_fields} | {"dag"} == {field.name for field in fields(Task)}
    recorded = TaskConditions(**conditions_of(TASK)).model_dump_json()
    again = TaskConditions.model_validate(json.loads(recorded)).task_of(TASK.dag)
    assert again.key == TASK.key and again.name == "mine" and again.target == TASK.target


@pytest.mark.parametrize(
    "wrong",
    [{"threads": 0}, {"reuse_distance_bytes": -1}, {"precision": "exact"}, {"cores": 1}],
)
def test_others_are_refused(wrong: dict[str, object]) -> None:
    recorded = TaskConditions(**conditions_of(TASK)).model_dump(mode="json")
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        TaskConditions.model_validate(recorded | wrong)
