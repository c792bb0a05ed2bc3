"""Messages between a driver and its nodes, as frames of :mod:`ansorpy.measure.workers.protocol`.

The payload is that of build workers: definitions and steps as JSON, object code as bytes.
Answers are validated field by field; nothing in them is executed or unpickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from ansorpy.errors import AnsorpyError, ForeignFile
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.text.serialize import dag_from_dict
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.records.definitions import definition_json
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.workers.protocol import Decoder, Message, ProtocolError
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.target import Target

__all__ = [
    "Found", "Hello", "Work", "read_answer", "read_hello", "read_work", "single", "write_answer",
    "write_work",
]  # fmt: skip


class _Fields(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Hello(_Fields):
    """Fields of the answer to ``hello``: the node's ansorpy version and its parallel builds."""

    version: str
    builders: int = Field(ge=1)


class _Code(_Fields):
    """Header from :meth:`Built.parts` for the next *blobs* blobs."""

    header: dict[str, object]
    blobs: int = Field(ge=1)


class _WorkFields(_Fields):
    """Fields of a request; its blobs are *definitions* DAGs, the task's first, then the steps.

    There is one blob of steps per candidate; ``bases`` gives the definition each applies to.  The
    last blobs are the ``code`` of the single candidate, if it was built elsewhere.
    """

    target: Target
    threads: int
    precision: Precision
    between_bytes: int = Field(ge=0)
    name: str
    definitions: int = Field(ge=1)
    bases: tuple[int, ...]
    code: _Code | None
    incumbent_s: PositiveFloat | None
    rounds: int = Field(ge=1)
    within_s: PositiveFloat | None


class _ResultFields(_Fields):
    """A :class:`MeasureResult`; ``max_error`` is None when it is infinite."""

    kind: TrialKind
    seconds: tuple[PositiveFloat, ...]
    reason: str
    build_s: float = Field(ge=0)
    run_s: float = Field(ge=0)
    max_error: float | None = Field(ge=0)
    object_digest: str


class _AnswerFields(_Fields):
    """Fields of ``answer``: a result, code or both per candidate; the blobs are code."""

    results: tuple[_ResultFields | None, ...]
    codes: tuple[_Code | None, ...]


Found = tuple[MeasureResult | None, Built | None]
"""A result (None: built but not run), and the code if it is passed on."""


@dataclass(frozen=True)
class Work:
    """Candidates of a task, with what a node needs to know to measure or re-time them.

    Candidates without a result *within_s* of arriving at the node are CUT.
    """

    task: Task
    states: Sequence[State]
    incumbent_s: float | None = None
    rounds: int = 9
    built: Built | None = None
    within_s: float = math.inf


def write_work(kind: str, work: Work) -> Message:
    """Encode *work* as ``build`` (keep), ``compile`` (return), ``measure`` or ``retime``."""
    task = work.task
    texts = [definition_json(task.dag)]
    places = {id(task.dag): 0}
    for state in work.states:
        if id(state.base) not in places:
            places[id(state.base)] = len(texts)
            texts.append(definition_json(state.base))
    [code], blobs = _written([work.built])
    fields = _WorkFields(
        target=task.target,
        threads=task.threads,
        precision=task.precision,
        between_bytes=task.between_bytes,
        name=task.name,
        definitions=len(texts),
        bases=tuple(places[id(state.base)] for state in work.states),
        code=code,
        incumbent_s=work.incumbent_s,
        rounds=work.rounds,
        within_s=work.within_s if math.isfinite(work.within_s) else None,
    )
    steps = [steps_to_json(state.history) for state in work.states]
    lines = tuple(text.encode() for text in (*texts, *steps))
    return Message(kind, fields.model_dump(mode="json"), (*lines, *blobs))


def _task_of(fields: _WorkFields, definition: bytes) -> Task:
    """Make the task from *fields* and its definition."""
    return Task(
        dag_from_dict(json.loads(definition)),
        fields.target,
        fields.threads,
        fields.precision,
        fields.between_bytes,
        fields.name,
    )


def read_work(message: Message) -> Work:
    """Inverse of :func:`write_work`; raises :class:`ProtocolError` for anything else."""
    try:
        fields = _WorkFields.model_validate(message.fields)
        definitions = message.blobs[: fields.definitions]
        task = _task_of(fields, definitions[0])
        dags = [task.dag, *(dag_from_dict(json.loads(text)) for text in definitions[1:])]
        end = fields.definitions + len(fields.bases)
        steps = message.blobs[fields.definitions : end]
        [built] = _read([fields.code], message.blobs[end:])
        states = [
            State.replay(dags[base], steps_from_json(text))
            for base, text in zip(fields.bases, steps, strict=True)
        ]
    except (AnsorpyError, ValueError, TypeError, KeyError, IndexError) as error:
        raise ProtocolError(f"not work for a node: {error}") from None
    within_s = math.inf if fields.within_s is None else fields.within_s
    return Work(task, states, fields.incumbent_s, fields.rounds, built, within_s)


def write_answer(found: Sequence[Found]) -> Message:
    """Encode what was found for each candidate, in order."""
    codes, blobs = _written([built for _, built in found])
    results = tuple(_fields_of(result) for result, _ in found)
    fields = _AnswerFields(results=results, codes=tuple(codes))
    return Message("answer", fields.model_dump(mode="json"), blobs)


def read_answer(message: Message, n: int) -> list[Found]:
    """Decode the answer for *n* candidates, in order.

    Raises:
        ProtocolError: It is something else.
    """
    try:
        fields = _AnswerFields.model_validate(message.fields)
        built = _read(fields.codes, message.blobs)
    except (ValueError, ForeignFile) as error:
        raise ProtocolError(f"not an answer: {error}") from None
    if not len(fields.results) == len(built) == n:
        raise ProtocolError(f"{len(fields.results)} results for {n} candidates")
    results = [None if r is None else _result_of(r) for r in fields.results]
    for result in results:
        if result is not None and result.ok and not result.seconds:
            raise ProtocolError("a correct program without a time")
    return list(zip(results, built, strict=True))


def _written(built: Sequence[Built | None]) -> tuple[list[_Code | None], tuple[bytes, ...]]:
    """Headers, and all blobs concatenated into one tuple."""
    parts = [None if b is None else b.parts() for b in built]
    codes = [None if p is None else _Code(header=p[0], blobs=len(p[1])) for p in parts]
    return codes, tuple(blob for p in parts if p is not None for blob in p[1])


def _read(codes: Sequence[_Code | None], blobs: Sequence[bytes]) -> list[Built | None]:
    """Inverse of :func:`_written`; raises :class:`ForeignFile` or ``ValueError`` otherwise."""
    found: list[Built | None] = []
    for code in codes:
        taken = 0 if code is None else code.blobs
        found.append(None if code is None else built_from_parts(code.header, blobs[:taken]))
        blobs = blobs[taken:]
    if blobs:
        raise ValueError(f"{len(blobs)} blobs too many")
    return found


def read_hello(message: Message) -> Hello:
    """Decode a node's greeting; raises :class:`ProtocolError`."""
    try:
        return Hello.model_validate(message.fields)
    except ValidationError as error:
        raise ProtocolError(f"not a greeting: {error}") from None


def single(frame: bytes) -> Message:
    """Decode the single message in *frame*; raises :class:`ProtocolError` for anything else."""
    decoder = Decoder()
    decoder.feed(frame)
    message = decoder.take()
    if message is None or not decoder.is_empty:
        raise ProtocolError(f"a frame of {len(frame)} bytes is not one message")
    return message


def _fields_of(result: MeasureResult | None) -> _ResultFields | None:
    if result is None:
        return None
    return _ResultFields(
        kind=result.kind,
        seconds=result.seconds,
        reason=result.reason,
        build_s=result.build_s,
        run_s=result.run_s,
        max_error=result.max_error if math.isfinite(result.max_error) else None,
        object_digest=result.object_digest,
    )


def _result_of(fields: _ResultFields) -> MeasureResult:
    return MeasureResult(
        kind=fields.kind,
        seconds=fields.seconds,
        reason=fields.reason,
        build_s=fields.build_s,
        run_s=fields.run_s,
        max_error=math.inf if fields.max_error is None else fields.max_error,
        object_digest=fields.object_digest,
    )
