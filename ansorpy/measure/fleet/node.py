"""Service on one node of a fleet: builds and times what it is sent, with its own workers.

It wraps a :class:`~ansorpy.measure.run.runner.LocalRunner`, so crashes and hangs of candidates are
handled as on the driver's machine, builds never overlap timing, and timing holds this machine's
lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from pydantic import TypeAdapter

from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.wire import Work, read_work, write_answer, write_failure, write_hello
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.workers.protocol import ProtocolError
from ansorpy.target import Target

__all__ = ["NodeService", "options_from_json", "options_to_json"]

_OPTIONS = TypeAdapter(MeasureOptions)


def options_to_json(options: MeasureOptions) -> bytes:
    """Serialize *options* for :class:`NodeService`."""
    return _OPTIONS.dump_json(options)


def options_from_json(text: bytes) -> MeasureOptions:
    """Inverse of :func:`options_to_json`; raises ``ValueError`` for anything else."""
    return _OPTIONS.validate_json(text)


class NodeService:
    """The actor on a node.  Its methods take and return messages of :mod:`..fleet.wire`.

    Args:
        options: The driver's, serialized.
    """

    def __init__(self, options: bytes) -> None:
        # The process that started this one may have limited threads (Ray sets this to one).
        os.environ.pop("OMP_NUM_THREADS", None)
        self._runner = LocalRunner(options_from_json(options))

    def hello(self) -> bytes:
        """The version of ansorpy here, and how many programs are built at a time."""
        return write_hello(self._runner.builders)

    def build(self, work: bytes) -> bytes:
        """Build the candidates, for whatever machine."""
        return _answered(self._build, work)

    def measure(self, work: bytes) -> bytes:
        """Check and time the candidates; the code of a single one may come with it."""
        return _answered(self._measure, work)

    def retime(self, work: bytes) -> bytes:
        """Time finalists in turns."""
        return _answered(self._retime, work)

    def close(self) -> None:
        """End the workers."""
        self._runner.close()

    def _build(self, work: Work) -> Sequence[MeasureResult | Built]:
        return self._runner.build(work.task, work.states)

    def _measure(self, work: Work) -> Sequence[MeasureResult]:
        _refuse_foreign(work.task)
        if work.built is not None:
            self._runner.remember(work.task, work.states[0], work.built)
        return self._runner.measure(work.task, work.states, incumbent_s=work.incumbent_s)

    def _retime(self, work: Work) -> Sequence[MeasureResult]:
        _refuse_foreign(work.task)
        return self._runner.retime(work.task, work.states)


def _answered(do: Callable[[Work], Sequence[MeasureResult | Built]], message: bytes) -> bytes:
    """Answer with what *do* makes of the work in *message*, or with the reason it cannot."""
    try:
        work = read_work(message)
        with until(time.monotonic() + work.within_s):
            return write_answer(do(work))
    except (AnsorpyError, ProtocolError, OSError, MemoryError) as error:
        # The last two occur on a full disk, or if out of processes or memory.
        return write_failure(error)


def _refuse_foreign(task: Task) -> None:
    """Reject targets this machine is not: its times would be wrong."""
    target, host = task.target, Target.host()
    same = target.key == host.key if target.name == "host" else target.runs_on_host()
    if not same:
        raise UsageError(
            f"this node is a {host.cpu} and cannot time code for {target.name} ({target.cpu})",
            hint="have it offer what `ansorpy doctor` on it says",
        )
