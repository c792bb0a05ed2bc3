"""The prediction worker: receives a task and returns the programs predicted fastest.

Afterwards it proves and checks those whose proofs may take long, and which it may not survive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_from_json, dag_to_json
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.proofs.wire import proof_from_fields, proof_to_fields
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.serialize import state_from_json, states_to_json
from ansorpy.schedule.state import State
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.tasks.predict import predicted_best
from ansorpy.tasks.predict_build import Made, Making, finish, make

__all__ = ["finish_message", "finished", "make_handlers", "predict_message", "predicted"]


class _Request(TaskConditions):
    """Fields of ``predict``; its blobs are the definition as JSON, and programs known before."""

    preset: str
    options: PredictOptions
    making: Making


class _FinishRequest(TaskConditions):
    """Fields of ``finish``; its blobs are the task's definition, the program, and its code."""

    making: Making
    seed: int
    built: dict[str, object]


class _Finished(BaseModel):
    """Fields of ``finished``."""

    model_config = ConfigDict(extra="forbid")

    proof: dict[str, object] | None = None
    checked: MeasureResult | None = None

    @classmethod
    def of(cls, made: Made) -> Self:
        """What *made* has besides its code."""
        proof = None if made.proof is None else proof_to_fields(made.proof)
        return cls(proof=proof, checked=made.checked)

    def with_code(self, built: Built | None) -> Made:
        """Inverse of :meth:`of`."""
        proof = None if self.proof is None else proof_from_fields(self.proof)
        return Made(built, proof, self.checked)


class _Answer(BaseModel):
    """Fields of ``predicted``; its blobs are definition and steps of each program, then code."""

    model_config = ConfigDict(extra="forbid")

    programs: int
    built: dict[str, object] | None = None
    made: _Finished


def predict_message(
    task: Task,
    preset: str,
    options: PredictOptions,
    making: Making = Making.NOTHING,
    known: Sequence[State] = (),
) -> Message:
    """The request that a worker predict programs of *task* with the rules of *preset*.

    *making* says what it makes of the first.  Programs that are *known* need no prediction.
    """
    request = _Request(preset=preset, options=options, making=making, **conditions_of(task))
    definition = dag_to_json(task.dag).encode()
    return Message("predict", request.model_dump(mode="json"), (definition, *_blobs(known)))


def finish_message(task: Task, state: State, built: Built, making: Making, seed: int) -> Message:
    """The request to :func:`~.predict_build.finish` *state*, whose code is *built*, in a worker.

    It may run for minutes.
    """
    header, code = built.parts()
    request = _FinishRequest(making=making, seed=seed, built=header, **conditions_of(task))
    definition = dag_to_json(task.dag).encode()
    return Message("finish", request.model_dump(mode="json"), (definition, *_blobs([state]), *code))


def _blobs(states: Sequence[State]) -> list[bytes]:
    """Definition and steps of each of *states*."""
    return [text.encode() for texts in states_to_json(states) for text in texts]


def _states(blobs: Sequence[bytes]) -> list[State]:
    """The programs in *blobs*."""
    return [state_from_json(*texts) for texts in zip(blobs[::2], blobs[1::2], strict=True)]


def predicted(answer: Message) -> tuple[list[State], Made]:
    """The programs in a worker's *answer*, the one predicted fastest first, and what it made.

    Raises:
        ForeignFile: It contains something else.
    """
    try:
        fields = _Answer.model_validate(answer.fields)
    except ValidationError as error:
        raise ForeignFile(f"not a prediction: {error.errors()[0]['msg']}") from None
    count = 2 * fields.programs
    states, code = _states(answer.blobs[:count]), answer.blobs[count:]
    built = None if fields.built is None else built_from_parts(fields.built, code)
    return states, fields.made.with_code(built)


def finished(answer: Message, built: Built) -> Made:
    """What a worker's *answer* says of a program whose code is *built*.

    Raises:
        ForeignFile: It contains something else.
    """
    try:
        return _Finished.model_validate(answer.fields).with_code(built)
    except ValidationError as error:
        raise ForeignFile(f"not a proof: {error.errors()[0]['msg']}") from None


def _predict(message: Message) -> Message:
    request = _Request.model_validate(message.fields)
    definition, *known = message.blobs
    task = request.task_of(dag_from_json(definition))
    states = _states(known)
    if not states:
        source = SketchSampler(task, preset_for(task.target, request.preset))
        states = list(predicted_best(task, source, options=request.options))
    made = make(task, states[0], request.making, request.options.seed)
    header, code = (None, ()) if made.built is None else made.built.parts()
    answer = _Answer(programs=len(states), built=header, made=_Finished.of(made))
    return Message("predicted", answer.model_dump(mode="json"), (*_blobs(states), *code))


def _finish(message: Message) -> Message:
    request = _FinishRequest.model_validate(message.fields)
    definition, *program = message.blobs[:3]
    task = request.task_of(dag_from_json(definition))
    [state], built = _states(program), built_from_parts(request.built, message.blobs[3:])
    made = finish(task, state, built, request.making, request.seed)
    return Message("finished", _Finished.of(made).model_dump(mode="json"))


def make_handlers() -> Mapping[str, Handler]:
    """The handlers of a prediction worker."""
    return {"predict": _predict, "finish": _finish}
