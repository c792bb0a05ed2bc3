"""The driver's side of a worker process: start it, send requests, watch, kill and restart it.

The driver never waits forever: each request has a limit, and no wait goes beyond the run's
deadline.  A worker that misses either, dies or writes something that is not a message is killed
(SIGTERM, then SIGKILL), and the next request starts a fresh one.  Workers run in their own session,
so Ctrl-C in a terminal reaches the driver only.  From the moment it starts, a worker dies with its
driver, however the driver ends (:mod:`ansorpy.measure.workers.started`).
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ansorpy.deadline import left_s
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.processes import queued_s
from ansorpy.measure.workers.protocol import Message, ProtocolError, encode
from ansorpy.measure.workers.started import Kind, Started, started

__all__ = ["ABANDONED_S", "Failure", "Reply", "Worker"]

_READ_BYTES = 1 << 20
_PIECE_S = 0.1
"""Seconds within which the next piece of an answer follows."""
_REST_S = 5.0
"""Seconds within which all of them do."""
ABANDONED_S = 30.0
"""Seconds to wait after SIGKILL; a call into a GPU's kernel driver may never return."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """A missing answer: the worker hung (``timeout``) or died (``crash``), and why.

    ``was_killed``: by SIGKILL, which the driver did not send.  When memory runs out, the system
    kills workers first, whichever program needs it; so this need not be the request's fault.
    """

    kind: Literal["timeout", "crash"]
    reason: str
    was_killed: bool = False


Reply = Message | Failure


class Worker:
    """One supervised worker process with the handlers of *module*.

    Args:
        module: Import path of a module with ``make_handlers()``.
        cores: Cores it is pinned to; None leaves the driver's affinity.
        memory_bytes: Private memory (heap, stacks) it may use; further allocations fail.
        environment: Variables added to the driver's.
        start_timeout_s: How long imports may take before the start counts as failed.
        soft_kill_s: Seconds between SIGTERM and SIGKILL.

    ``generation`` counts the starts; ``is_ready``: the last one has said that it is.
    """

    def __init__(
        self,
        module: str,
        *,
        cores: Sequence[int] | None = None,
        memory_bytes: int | None = None,
        environment: Mapping[str, str] | None = None,
        start_timeout_s: float = 60.0,
        soft_kill_s: float = 0.2,
    ) -> None:
        pinned = None if cores is None else tuple(cores)
        self.kind = Kind(module, pinned, memory_bytes, dict(environment or {}))
        self.start_timeout_s = start_timeout_s
        self.soft_kill_s = soft_kill_s
        self.generation = 0
        self.is_ready = False
        self._started: Started | None = None

    # Lifetime

    @property
    def pid(self) -> int | None:
        return None if self._started is None else self._started.process.pid

    @property
    def is_alive(self) -> bool:
        return self._started is not None and self._started.process.is_running()

    def start(self) -> None:
        """Start the process if it is not running; returns before its imports are done."""
        if self.is_alive:
            return
        self.kill()
        self._started = started(self.kind)
        self.is_ready = False
        self.generation += 1

    def kill(self) -> int | None:
        """Kill the process, gracefully at first; returns its exit status (negative: a signal)."""
        ended, self._started = self._started, None
        if ended is None:
            return None
        process = ended.process
        try:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)  # a stopped process would not see the other signal
            if not process.wait(self.soft_kill_s):
                process.send_signal(signal.SIGKILL)
                if not process.wait(ABANDONED_S):  # it is stuck in a kernel driver
                    _LOG.warning(
                        "worker %d (%s) did not end within %.0f s of SIGKILL and is left behind",
                        process.pid, self.kind.module, ABANDONED_S,
                    )  # fmt: skip
        except BaseException:
            process.send_signal(signal.SIGKILL)
            raise
        finally:
            ended.close()
        return process.exit_status

    def stop(self) -> None:
        """Pause the process (SIGSTOP) until :meth:`resume` or its end."""
        if self._started is not None:
            self._started.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._started is not None:
            self._started.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process; the worker may be started again."""
        self.kill()

    # Requests

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Reply:
        """Send *message* and wait for its answer, at most *timeout_s* once the worker is ready.

        If one of its threads waited for a core, which others occupied, for at least half of that
        time, it is allowed *starved_s* in all.  Past the deadline nothing is sent.
        """
        failure = self.make_ready()
        if failure is not None:
            return failure
        left = left_s()
        try:
            return self._ask(message, min(timeout_s, left), min(starved_s, left))
        except BaseException:
            # After an interrupt, a late answer must not be taken for one to the next message.
            self.kill()
            raise

    def _ask(self, message: Message, timeout_s: float, starved_s: float) -> Reply:
        begin, before = time.monotonic(), self._queued_s()
        deadline = begin + timeout_s
        failure = self.send(message, deadline)
        if failure is not None:
            return failure
        while True:
            answer = self.receive(deadline - time.monotonic())
            if answer is not None:
                return answer
            now = time.monotonic()
            queued = (wait - before.get(n, 0.0) for n, wait in self._queued_s().items())
            if max(queued, default=0.0) >= 0.5 * (now - begin):
                deadline = max(deadline, min(now + 0.25 * timeout_s, begin + starved_s))
            if now >= deadline:
                return self.fail_timeout(deadline - begin)

    def _queued_s(self) -> dict[str, float]:
        """Seconds that each thread of the worker has waited for a core so far."""
        cores = len(self.kind.cores or (0,))
        return {} if self.pid is None else queued_s(self.pid, cores)

    def make_ready(self) -> Failure | None:
        """Start the process if needed and wait until its imports are done.

        Returns a Failure when the deadline passes first; the process then finishes its imports.

        Raises:
            AnsorpyError: Two starts in a row ended before the worker was ready.
        """
        for last in (False, True):
            if left_s() <= 0:
                break
            self.start()
            if self.is_ready:
                return None
            hello = self._await_hello()
            if hello is None:
                break
            if isinstance(hello, Message):
                self.is_ready = True
                return None
            if last:
                raise AnsorpyError(
                    f"a measurement worker cannot start: {hello.reason}",
                    hint=f"try: {sys.executable} -c 'import {self.kind.module}'",
                )
        return Failure("timeout", "not asked any more")

    def _await_hello(self) -> Reply | None:
        """The first message of a started process; None when the deadline passes first."""
        deadline = time.monotonic() + min(self.start_timeout_s, left_s())
        while time.monotonic() < deadline:
            answer = self.receive(max(0.0, deadline - time.monotonic()))
            if answer is not None:
                return answer
        return None if left_s() <= 0 else self.fail_timeout(self.start_timeout_s)

    def send(self, message: Message, deadline: float) -> Failure | None:
        """Write *message*; a Failure when the worker dies or stops reading before *deadline*."""
        assert self._started is not None
        view, begin = memoryview(encode(message)), time.monotonic()
        poll = select.poll()
        poll.register(self._started.to_worker, select.POLLOUT)
        while view:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return self.fail_timeout(deadline - begin)
            try:
                view = view[os.write(self._started.to_worker, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return self._fail_crash()
        return None

    def fileno(self) -> int:
        """The descriptor that becomes readable when there is something to receive."""
        return -1 if self._started is None else self._started.from_worker

    def receive(self, timeout_s: float) -> Reply | None:
        """Return the next answer, a Failure if the worker died, or None after *timeout_s*.

        An answer that is being written, which the worker had in time, may take
        :data:`_REST_S` longer.
        """
        assert self._started is not None
        decoder, answers = self._started.decoder, self._started.from_worker
        deadline = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(answers, select.POLLIN)
        try:
            message = decoder.take()
            while message is None:
                left = deadline - time.monotonic()
                if not decoder.is_empty:
                    left = max(left, min(_PIECE_S, left + _REST_S))
                if not poll.poll(max(left, 0.0) * 1000):
                    return None
                data = os.read(answers, _READ_BYTES)
                if not data:
                    return self._fail_crash()
                decoder.feed(data)
                message = decoder.take()
        except ProtocolError as error:
            self.kill()
            return Failure("crash", f"the worker wrote junk instead of an answer: {error}")
        return message

    # Failures

    def fail_timeout(self, timeout_s: float) -> Failure:
        """Kill the worker because it did not answer within *timeout_s*."""
        said = self._said()
        self.kill()
        return Failure("timeout", _joined(f"no answer within {timeout_s:.3g} s", said))

    def _fail_crash(self) -> Failure:
        said = self._said()
        # The pipe closes a moment before the process has exited.
        has_ended = self._started is not None and self._started.process.wait(1.0)
        status = self.kill()
        was_killed = has_ended and status == -signal.SIGKILL
        return Failure("crash", _joined(_exit_text(status), said), was_killed)

    def _said(self) -> str:
        return "" if self._started is None else self._started.stderr_tail()


def _exit_text(status: int | None) -> str:
    if status is None:
        return "the worker is gone"
    if status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker ended with exit status {status} without an answer"


def _joined(reason: str, said: str) -> str:
    return f"{reason}\n{said}" if said else reason
