"""Handlers of a build worker: definition and steps in, object code out."""

from __future__ import annotations

import hashlib
import logging
import resource
import traceback
from collections.abc import Mapping
from pathlib import Path

from ansorpy.codegen.backends import codegen_of
from ansorpy.config import DUMP
from ansorpy.errors import AnsorpyError
from ansorpy.ir.analysis.overwrite import overwritable
from ansorpy.ir.loops import Program
from ansorpy.ir.text.printer import text
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.result import TrialKind
from ansorpy.measure.workers.messages import BuildRequest
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.schedule.lowering.dispatch import lower_for_all
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.schedule.serialize import state_from_json
from ansorpy.target import Target

__all__ = ["build", "build_lowered", "make_handlers"]

_LOG = logging.getLogger(__name__)


def build_lowered(
    lowered: Lowered, target: Target, symbol: str, *, prefetch: bool = False
) -> Built:
    """Compile ``run`` as *symbol* and ``bind``, if there is one, as *symbol*_bind.

    With *prefetch*, ``run`` expects its constants outside a core's private caches.  ``bind`` may
    have another target: for a GPU program it is compiled for this machine's CPU, which runs it.
    """
    codegen = codegen_of(target)
    folder = DUMP.get()
    if folder is not None:
        _dump(lowered.run, target, symbol, folder, prefetch)
    run = codegen.build(lowered.run, target, symbol=symbol, prefetch=prefetch)
    run_params = tuple(ParamSpec.of(param) for param in lowered.run.params)
    overwrites = overwritable(lowered.run)
    if lowered.bind is None:
        return Built(run, run_params, dims=lowered.run.dims, overwrites=overwrites)
    bind, machine = codegen.for_constants(lowered.bind, target)
    made = codegen_of(machine).build(bind, machine, symbol=f"{symbol}_bind")
    bind_params = tuple(ParamSpec.of(p) for p in bind.params)
    return Built(run, run_params, made, bind_params, lowered.run.dims, overwrites=overwrites)


def _dump(program: Program, target: Target, symbol: str, folder: Path, prefetch: bool) -> None:
    """Write *program* and its generated code, named by content so that nothing is overwritten."""
    shown = text(program)
    name = f"{symbol}-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
    source = next(iter(codegen_of(target).forms.values()))
    code = source.of(program, target, symbol, prefetch)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text(shown, encoding="utf-8")
        (folder / f"{name}{source.suffix}").write_text(code, encoding="utf-8")
    except OSError as error:  # the program is none the worse for it
        _LOG.warning("%s lacks a program: %s", folder, error)


def build(message: Message) -> Message:
    """Answer ``built`` with the code, or ``failed`` with the kind of failure and the reason."""
    request = BuildRequest.model_validate(message.fields)
    definition, steps = message.blobs
    stage_kind = TrialKind.LOWER_ERROR
    try:
        lowered = lower_for_all(state_from_json(definition, steps))
        stage_kind = TrialKind.BUILD_ERROR
        built = build_lowered(lowered, request.target, request.symbol, prefetch=request.prefetch)
        header, blobs = built.parts()
    except Exception as error:
        # A schedule that breaks the compiler is a failed trial, not the end of the search.
        return Message("failed", {"kind": stage_kind.value, "reason": _explained(error)})
    return Message("built", header, blobs)


def _explained(error: Exception) -> str:
    """Message for the user: plain for our own errors, a short traceback for others."""
    if isinstance(error, AnsorpyError):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        allowed, _ = resource.getrlimit(resource.RLIMIT_DATA)
        return f"out of memory: a build worker may take {allowed >> 20} MiB"
    return "".join(traceback.format_exception(error, limit=-6)).strip()


def make_handlers() -> Mapping[str, Handler]:
    """The handlers of a build worker."""
    return {"build": build}
