"""What a driver and its nodes send each other: JSON in bytes, validated on arrival.

Nothing in a message is executed or unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, model_validator

from ansorpy.errors import AnsorpyError, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_from_json, dag_to_json
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import NodeUnfit
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.task_conditions import TaskConditions, conditions_of
from ansorpy.measure.workers.protocol import ProtocolError
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.version import __version__

__all__ = [
    "Work", "read_answer", "read_hello", "read_results", "read_work", "write_answer",
    "write_failure", "write_hello", "write_work",
]  # fmt: skip


@dataclass(frozen=True)
class Work:
    """Candidates of a task, with what a node needs to know to build, measure or re-time them.

    Candidates without a result *within_s* of arriving at the node are CUT.
    """

    task: Task
    states: Sequence[State]
    incumbent_s: float | None = None
    built: Built | None = None
    """The code of the only candidate, if another node built it."""
    within_s: float = math.inf


class _Message(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        ser_json_inf_nan="constants",
    )


class _Hello(_Message):
    """Answer to a greeting: the node's ansorpy version and its number of parallel builds."""

    version: str
    builders: int = Field(ge=1)


class _Candidate(_Message):
    """A schedule: the index of the definition that *steps*, a JSON text, apply to."""

    base: int = Field(ge=0)
    steps: str


class _Work(_Message, TaskConditions):
    """A :class:`Work`; the first of *definitions*, which are JSON texts, is the task's."""

    definitions: Annotated[tuple[str, ...], Field(min_length=1)]
    candidates: tuple[_Candidate, ...]
    built: Built | None
    incumbent_s: PositiveFloat | None
    within_s: PositiveFloat


class _Failure(_Message):
    """Why a node cannot do the work; *is_reference*: what is wrong is the reference."""

    text: str
    is_reference: bool


class _Answer(_Message):
    """One result for each candidate, or its code if it was only built."""

    results: tuple[MeasureResult | Built, ...] = ()
    failure: _Failure | None = None

    @model_validator(mode="after")
    def _times_are_times(self) -> Self:
        for result in self.results:
            if isinstance(result, MeasureResult):
                if result.ok and not result.seconds:
                    raise ValueError("a correct program without a time")
                if not all(0.0 < seconds < math.inf for seconds in result.seconds):
                    raise ValueError("a time that is not positive and finite")
                if not all(n >= 0.0 for n in (result.build_s, result.run_s, result.max_error)):
                    raise ValueError("a duration or an error that is not a positive number")
        return self


def write_hello(builders: int) -> bytes:
    """Greeting of a node of this version that builds so many programs at a time."""
    return _json(_Hello(version=__version__, builders=builders))


def read_hello(message: bytes) -> int:
    """Number of parallel builds of a node; raises :class:`NodeUnfit` for another version."""
    try:
        hello = _Hello.model_validate_json(message)
    except ValidationError as error:
        raise NodeUnfit(f"not a greeting: {error}") from None
    if hello.version != __version__:
        raise NodeUnfit(f"it runs ansorpy {hello.version}, the driver {__version__}")
    return hello.builders


def write_work(work: Work) -> bytes:
    """Encode *work*."""
    task = work.task
    dags = {id(dag): dag for dag in (task.dag, *(state.definition for state in work.states))}
    places = {key: index for index, key in enumerate(dags)}
    fields = _Work(
        **conditions_of(task),
        definitions=tuple(map(dag_to_json, dags.values())),
        candidates=tuple(
            _Candidate(base=places[id(state.definition)], steps=steps_to_json(state.history))
            for state in work.states
        ),
        built=work.built,
        incumbent_s=work.incumbent_s,
        within_s=work.within_s,
    )
    return _json(fields)


def read_work(message: bytes) -> Work:
    """Inverse of :func:`write_work`; raises :class:`ProtocolError` for anything else."""
    try:
        fields = _Work.model_validate_json(message)
        dags = list(map(dag_from_json, fields.definitions))
        task = fields.task_of(dags[0])
        states = [
            State.replay(dags[candidate.base], steps_from_json(candidate.steps))
            for candidate in fields.candidates
        ]
    except (AnsorpyError, ValueError, TypeError, KeyError, IndexError) as error:
        raise ProtocolError(f"not work for a node: {error}") from None
    return Work(task, states, fields.incumbent_s, fields.built, fields.within_s)


def write_answer(results: Sequence[MeasureResult | Built]) -> bytes:
    """Encode what became of each candidate, in order."""
    return _json(_Answer(results=tuple(results)))


def write_failure(error: Exception) -> bytes:
    """Encode why this node cannot do what it was asked."""
    text = str(error) or type(error).__name__
    is_reference = isinstance(error, VerificationFailed)
    return _json(_Answer(failure=_Failure(text=text, is_reference=is_reference)))


def read_answer(message: bytes, n: int) -> list[MeasureResult | Built]:
    """Decode the answer for *n* candidates, in order.

    Raises:
        NodeUnfit: The node cannot do the work, or this is no answer to it.
        VerificationFailed: The task's reference is wrong on the node.
    """
    try:
        answer = _Answer.model_validate_json(message)
    except ValidationError as error:
        raise NodeUnfit(f"not an answer: {error}") from None
    if answer.failure is not None:
        kind = VerificationFailed if answer.failure.is_reference else NodeUnfit
        raise kind(answer.failure.text)
    if len(answer.results) != n:
        raise NodeUnfit(f"{len(answer.results)} results for {n} candidates")
    return list(answer.results)


def read_results(message: bytes, n: int) -> list[MeasureResult]:
    """Decode the answer of a node that was to run *n* candidates; raises as :func:`read_answer`."""
    results = [r for r in read_answer(message, n) if isinstance(r, MeasureResult)]
    if len(results) != n:
        raise NodeUnfit("it answers with code where it was to run it")
    return results


def _json(message: _Message) -> bytes:
    return message.model_dump_json().encode()
