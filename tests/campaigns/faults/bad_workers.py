"""Workers that hang, die, fill their memory or lie about some of the programs they are given."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache

from ansorpy.measure.build.built import built_from_parts
from ansorpy.measure.build.handlers import build
from ansorpy.measure.check.reference import reference_state
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.handlers import RunSession
from ansorpy.measure.workers.messages import MeasureRequest
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.schedule.steps.records import steps_to_json
from tests.campaigns.faults.workload import small_tasks
from tests.measure import payload

__all__ = ["BUILDING", "RUNNING", "fault_of"]

_SHARE = 6
"""One program in so many meets a fault where it is built, and one where it is run."""


@cache
def _spared() -> frozenset[bytes]:
    """The programs that make references: without these, nothing can be measured."""
    references = (reference_state(task.dag) for task in small_tasks())
    return frozenset(steps_to_json(state.history).encode() for state in references)


def fault_of(program: bytes, faults: Mapping[str, frozenset[TrialKind]]) -> str:
    """The fault that *program*, its steps or its code's digest, always meets; mostly none."""
    number = int.from_bytes(hashlib.sha256(program).digest()[:8], "big")
    if program in _spared() or number % _SHARE:
        return ""
    return list(faults)[number // _SHARE % len(faults)]


BUILDING: Mapping[str, frozenset[TrialKind]] = {
    "hang": frozenset({TrialKind.BUILD_TIMEOUT}),
    "exit": frozenset({TrialKind.CRASH}),
    "segfault": frozenset({TrialKind.CRASH}),
    "junk": frozenset({TrialKind.CRASH}),
    "torn": frozenset({TrialKind.CRASH}),
    "fill": frozenset({TrialKind.BUILD_ERROR}),
    "echo": frozenset({TrialKind.BUILD_ERROR}),
    "swap": frozenset({TrialKind.WRONG_RESULT, TrialKind.LOWER_ERROR}),
}
"""Faults of build workers, and what the trial may then end as."""

RUNNING: Mapping[str, frozenset[TrialKind]] = {
    "hang": frozenset({TrialKind.TIMEOUT}),
    "exit": frozenset({TrialKind.CRASH}),
    "segfault": frozenset({TrialKind.CRASH}),
    "junk": frozenset({TrialKind.CRASH}),
    "deaf": frozenset({TrialKind.TIMEOUT}),
    "fill": frozenset({TrialKind.RUN_ERROR}),
    "echo": frozenset({TrialKind.CRASH}),
    "boast": frozenset({TrialKind.CRASH}),
}
"""Faults of run workers, likewise."""


def _fill(message: Message) -> Message:
    """Allocate beyond the limit of a build worker; run workers have none, so say so only."""
    if message.kind == "build":
        return Message("built", {"bytes": len(bytearray(2 << 30))})
    raise MemoryError


def _exit(message: Message) -> Message:
    os._exit(0)


def _boast(message: Message) -> Message:
    """A time below zero."""
    given = {"kind": "ok", "reason": "", "max_error": 0.0, "run_s": 0.0, "check_s": 0.0}
    return Message("measured", given | {"seconds": [-1e-9]})


def _swapped(message: Message) -> Message:
    """Build the same schedule of a definition that subtracts where the right one multiplies."""
    definition, steps = message.blobs
    other = definition.replace(b'"*"', b'"-"')
    return build(Message(message.kind, message.fields, (other, steps)))


def _faulty(good: Handler, bad: Mapping[str, Handler], fault: Callable[[Message], str]) -> Handler:
    def handler(message: Message) -> Message:
        found = fault(message)
        return bad[found](message) if found else good(message)

    return handler


def make_handlers() -> Mapping[str, Handler]:
    """Handlers of build and of run workers."""
    known, runs = payload.make_handlers(), RunSession().handlers()
    bad = {
        "hang": known["sleep"], "exit": _exit, "segfault": known["segfault"], "junk": known["junk"],
        "torn": known["torn"], "deaf": known["deaf"], "fill": _fill, "echo": known["echo"],
        "boast": _boast, "swap": _swapped,
    }  # fmt: skip
    bad["hang"] = lambda message: known["sleep"](Message("sleep", {"s": 60.0}))
    return {
        **runs,
        "build": _faulty(build, bad, lambda m: fault_of(m.blobs[1], BUILDING)),
        "measure": _faulty(runs["measure"], bad, lambda m: fault_of(_code(m), RUNNING)),
    }


def _code(message: Message) -> bytes:
    """The digest of the program to run, as its row will have it."""
    request = MeasureRequest.model_validate(message.fields)
    return built_from_parts(request.built, message.blobs[: request.blobs]).digest.encode()
