"""The prediction worker: receives a task and returns the programs predicted fastest."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_from_dict
from ansorpy.measure.records.definitions import definition_json
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.tasks.predict import PredictOptions, predicted_best

__all__ = ["make_handlers", "predict_message", "predicted_states"]


class _Request(TaskConditions):
    """Fields of ``predict``; its blob is the definition as JSON."""

    preset: str
    options: PredictOptions


def predict_message(task: Task, preset: str, options: PredictOptions) -> Message:
    """The request that a worker predict programs of *task* with the rules of *preset*."""
    request = _Request(preset=preset, options=options, **conditions_of(task))
    definition = definition_json(task.dag).encode()
    return Message("predict", request.model_dump(mode="json"), (definition,))


def predicted_states(answer: Message) -> list[State]:
    """The programs in a worker's *answer*, the one predicted fastest first."""
    blobs = iter(answer.blobs)
    pairs = zip(blobs, blobs, strict=True)
    return [
        State.replay(dag_from_dict(json.loads(definition)), steps_from_json(steps))
        for definition, steps in pairs
    ]


def _predict(message: Message) -> Message:
    request = _Request.model_validate(message.fields)
    task = request.task_of(dag_from_dict(json.loads(message.blobs[0])))
    source = SketchSampler(task, preset_for(task.target, request.preset))
    blobs: list[bytes] = []
    for state in predicted_best(task, source, options=request.options):
        blobs += [definition_json(state.definition).encode(), steps_to_json(state.history).encode()]
    return Message("predicted", {}, tuple(blobs))


def make_handlers() -> Mapping[str, Handler]:
    """The handlers of a prediction worker."""
    return {"predict": _predict}
