"""Service on one node of a fleet: builds and times what it is sent, with its own workers.

It wraps a :class:`~ansorpy.measure.run.runner.LocalRunner`, so crashes and hangs of candidates are
handled as on the driver's machine, builds never overlap timing, and timing holds this machine's
lock.
"""

from __future__ import annotations

import os
import time

from pydantic import TypeAdapter

from ansorpy.config import available_cores
from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.wire import Found, Hello, Work, read_work, single, write_answer
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.workers.protocol import Message, ProtocolError, encode
from ansorpy.target import Target
from ansorpy.version import __version__

__all__ = ["NodeService", "options_from_json", "options_to_json"]

_OPTIONS = TypeAdapter(MeasureOptions)


def options_to_json(options: MeasureOptions) -> bytes:
    """Serialize *options* for :class:`NodeService`."""
    return _OPTIONS.dump_json(options)


def options_from_json(text: bytes) -> MeasureOptions:
    """Inverse of :func:`options_to_json`; raises ``ValueError`` for anything else."""
    return _OPTIONS.validate_json(text)


class NodeService:
    """Answers frames with frames, one at a time; *options* are the driver's, serialized."""

    def __init__(self, options: bytes) -> None:
        # The process that started this one may have limited threads (Ray sets this to one).
        os.environ.pop("OMP_NUM_THREADS", None)
        read = options_from_json(options)
        self._builders = read.builders or available_cores()
        self._builder = Builder(
            self._builders,
            timeout_s=read.build_timeout_s,
            memory_bytes=read.build_memory_bytes,
            lock_folder=read.lock_folder,
        )
        self._runner = LocalRunner(read, self._builder)

    def answer(self, frame: bytes) -> bytes:
        """Answer ``answer`` or ``hello``, or ``error`` with the reason this node cannot work."""
        try:
            return encode(self._answer(single(frame)))
        except (AnsorpyError, ProtocolError, OSError, MemoryError) as error:
            # The last two occur on a full disk, or if out of processes or memory.
            kind = type(error).__name__
            return encode(Message("error", {"type": kind, "text": str(error) or kind}))

    def close(self) -> None:
        """End the workers."""
        self._runner.close()

    def _answer(self, message: Message) -> Message:
        if message.kind == "hello":
            fields = Hello(version=__version__, builders=self._builders)
            return Message("hello", fields.model_dump())
        work = read_work(message)
        with until(time.monotonic() + work.within_s):
            return self._worked(message.kind, work)

    def _worked(self, kind: str, work: Work) -> Message:
        if kind == "compile":
            return write_answer([_found(b) for b in self._runner.build(work.task, work.states)])
        _refuse_foreign(work)
        if kind == "build":
            found = [_found(b) for b in self._runner.build(work.task, work.states)]
            return write_answer([(result, None) for result, _ in found])
        if kind == "retime":
            results = self._runner.retime(work.task, work.states, rounds=work.rounds)
            return write_answer([(result, None) for result in results])
        return write_answer([self._measured(work)])

    def _measured(self, work: Work) -> Found:
        [state] = work.states
        if work.built is not None:
            self._builder.remember(work.task, state, work.built)
        [result] = self._runner.measure(work.task, [state], incumbent_s=work.incumbent_s)
        return result, self._runner.built(result.object_digest)


def _found(build: Built | MeasureResult) -> Found:
    return (build, None) if isinstance(build, MeasureResult) else (None, build)


def _refuse_foreign(work: Work) -> None:
    """Reject targets this machine is not: its times would be wrong."""
    target, host = work.task.target, Target.host()
    same = target.key == host.key if target.name == "host" else target.runs_on_host()
    if not same:
        raise UsageError(
            f"this node is a {host.cpu} and cannot time code for {target.name} ({target.cpu})",
            hint="have it offer what `ansorpy doctor` on it says",
        )
