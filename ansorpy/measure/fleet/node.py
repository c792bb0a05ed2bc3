"""What one node of a fleet does: build and time what it is sent, with workers of its own.

It wraps a :class:`~ansorpy.measure.runner.LocalRunner`, so a candidate that crashes or hangs costs
what it costs on the driver's machine, builds never overlap timing, and timing holds this machine's
lock.
"""

from __future__ import annotations

import os

from pydantic import TypeAdapter

from ansorpy import __version__
from ansorpy.config import available_cores
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.measure.fleet.wire import Hello, Work, read_work, single, write_answer
from ansorpy.measure.protocol import Message, ProtocolError, encode
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.runner import BuildService, LocalRunner, MeasureOptions
from ansorpy.target import Target

__all__ = ["NodeService", "options_from_json", "options_to_json"]

_OPTIONS = TypeAdapter(MeasureOptions)


def options_to_json(options: MeasureOptions) -> bytes:
    """*options* for :class:`NodeService`."""
    return _OPTIONS.dump_json(options)


def options_from_json(text: bytes) -> MeasureOptions:
    """What :func:`options_to_json` wrote; raises ``ValueError`` for anything else."""
    return _OPTIONS.validate_json(text)


class NodeService:
    """Answers frames with frames, one at a time; *options* are those of the driver's runner."""

    def __init__(self, options: bytes, builder: BuildService | None = None) -> None:
        # What started this process may have cut the threads of what it starts (Ray does, to one).
        os.environ.pop("OMP_NUM_THREADS", None)
        self._runner = LocalRunner(options_from_json(options), builder)

    def answer(self, frame: bytes) -> bytes:
        """``answer`` or ``hello``; ``error`` with the text of what keeps this node from working."""
        try:
            return encode(self._answer(single(frame)))
        except (AnsorpyError, ProtocolError) as error:
            return encode(Message("error", {"type": type(error).__name__, "text": str(error)}))

    def close(self) -> None:
        """End the workers."""
        self._runner.close()

    def _answer(self, message: Message) -> Message:
        if message.kind == "hello":
            builders = self._runner.options.builders or available_cores()
            return Message("hello", Hello(version=__version__, builders=builders).model_dump())
        work = read_work(message)
        _refuse_foreign(work)
        if message.kind == "build":
            found = self._runner.build(work.task, work.states)
            return write_answer([b if isinstance(b, MeasureResult) else None for b in found])
        if message.kind == "retime":
            return write_answer(self._runner.retime(work.task, work.states, rounds=work.rounds))
        [result] = self._runner.measure(work.task, work.states, incumbent_s=work.incumbent_s)
        return write_answer([result], self._runner.built(result.object_digest))


def _refuse_foreign(work: Work) -> None:
    """A node that offers a kind it is not must not answer with times."""
    target, host = work.task.target, Target.host()
    same = target.key == host.key if target.name == "host" else target.runs_on_host()
    if not same:
        raise UsageError(
            f"this node is a {host.cpu} and cannot time code for {target.name} ({target.cpu})",
            hint="have it offer what `ansorpy doctor` on it says",
        )
