"""The driver's side of a worker process: start it, send requests, watch, kill and restart it.

The driver never waits forever: each request has a limit, and no wait goes beyond the run's
deadline.  A worker that misses either, dies or writes something that is not a message is killed
(SIGTERM, then SIGKILL), and the next request starts a fresh one.  Workers run in their own session,
so Ctrl-C in a terminal reaches the driver only.  From the moment it starts, a worker dies with its
driver, however the driver ends (:func:`_tie`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import ansorpy.measure.workers.worker
from ansorpy.deadline import left_s
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.processes import processor_s
from ansorpy.measure.workers.protocol import Decoder, Message, ProtocolError, encode

__all__ = ["ABANDONED_S", "Failure", "Outcome", "Worker"]

_READ_BYTES = 1 << 20
_KEPT_STDERR_BYTES = 4000
ABANDONED_S = 30.0
"""Seconds to wait after SIGKILL; a call into a GPU's kernel driver may never return."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """A missing answer: the worker hung (``timeout``) or died (``crash``), and why."""

    kind: Literal["timeout", "crash"]
    reason: str


Outcome = Message | Failure


class Worker:
    """One supervised worker process with the handlers of *module*.

    Args:
        module: Import path of a module with ``make_handlers()``.
        cores: Cores it is pinned to; None leaves the driver's affinity.
        memory_bytes: Private memory (heap, stacks) it may use; further allocations fail.
        environment: Variables added to the driver's.
        start_timeout_s: How long imports may take before the start counts as failed.
        soft_kill_s: Seconds between SIGTERM and SIGKILL.

    ``generation`` counts the starts; ``is_ready``: the imports of the last one are done.
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
        self.module = module
        self.cores = None if cores is None else tuple(cores)
        self.memory_bytes = memory_bytes
        self.environment = dict(environment or {})
        self.start_timeout_s = start_timeout_s
        self.soft_kill_s = soft_kill_s
        self.generation = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._decoder = Decoder()
        self._stderr: IO[bytes] | None = None
        self._to_worker = -1
        self._from_worker = -1
        self._lifeline = -1
        self.is_ready = False

    # Lifetime

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process if it is not running; returns before its imports are done."""
        if self.is_alive:
            return
        self.kill()
        child_in, self._to_worker = os.pipe()
        self._from_worker, child_out = os.pipe()
        watched, self._lifeline = os.pipe()
        os.set_blocking(self._to_worker, False)
        os.set_blocking(self._from_worker, False)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        name = ansorpy.measure.workers.worker.__name__
        command = [sys.executable, "-P", "-m", name, str(child_in), str(child_out)]
        try:
            self._process = subprocess.Popen(
                [*command, str(os.getpid()), self.module],
                stdin=subprocess.DEVNULL, stdout=self._stderr, stderr=self._stderr,
                pass_fds=(child_in, child_out, watched), start_new_session=True,
                env=self._environment(),
            )  # fmt: skip
            _tie(self._process.pid, watched)
        finally:
            for descriptor in (child_in, child_out, watched):
                os.close(descriptor)
        self._restrict(self._process.pid)
        self._decoder = Decoder()
        self.is_ready = False
        self.generation += 1

    def _restrict(self, pid: int) -> None:
        """Pin and limit the process before its imports start any threads, which inherit both."""
        with suppress(ProcessLookupError):
            if self.cores is not None:
                os.sched_setaffinity(pid, self.cores)
            if self.memory_bytes is not None:
                limit = (self.memory_bytes, self.memory_bytes)
                resource.prlimit(pid, resource.RLIMIT_DATA, limit)

    def _environment(self) -> dict[str, str]:
        package_root = str(Path(ansorpy.__file__).parents[1])
        inherited = dict(os.environ)
        paths = [package_root, *filter(None, [inherited.get("PYTHONPATH")])]
        return {**inherited, "PYTHONPATH": os.pathsep.join(paths), **self.environment}

    def kill(self) -> int | None:
        """Kill the process, gracefully at first; returns its exit status (negative: a signal)."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # a stopped process would not see the kill signal
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.soft_kill_s)
        if process is not None and process.poll() is None:
            process.kill()
            self._await_end(process)
        self._close_files()
        return None if process is None else process.returncode

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the killed *process* is gone, unless it is stuck in a kernel driver."""
        try:
            process.wait(ABANDONED_S)
        except subprocess.TimeoutExpired:
            _LOG.warning(
                "worker %d (%s) did not end within %.0f s of SIGKILL and is left behind",
                process.pid, self.module, ABANDONED_S,
            )  # fmt: skip

    def stop(self) -> None:
        """Pause the process (SIGSTOP) until :meth:`resume` or its end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process; the worker may be started again."""
        self.kill()

    def _close_files(self) -> None:
        for descriptor in (self._to_worker, self._from_worker, self._lifeline):
            if descriptor >= 0:
                os.close(descriptor)
        self._to_worker = self._from_worker = self._lifeline = -1
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    # Requests

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Outcome:
        """Send *message* and wait for its answer, at most *timeout_s* once the worker is ready.

        If other processes kept the worker off its cores, so that it ran for less than half of
        *timeout_s* on each, it is allowed *starved_s* in all.  Past the deadline nothing is sent.
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

    def _ask(self, message: Message, timeout_s: float, starved_s: float) -> Outcome:
        begin, worked = time.monotonic(), self._worked_s()
        deadline = begin + timeout_s
        failure = self.send(message, deadline)
        if failure is not None:
            return failure
        while time.monotonic() < deadline:
            answer = self.receive(max(0.0, deadline - time.monotonic()))
            if answer is not None:
                return answer
            if self._worked_s() - worked < 0.5 * timeout_s * len(self.cores or (0,)):
                later = min(time.monotonic() + 0.25 * timeout_s, begin + starved_s)
                deadline = max(deadline, later)
        return self.fail_timeout(deadline - begin)

    def _worked_s(self) -> float:
        """CPU time the worker has used so far, over all threads."""
        return 0.0 if self._process is None else processor_s(self._process.pid)

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
                    hint=f"try: {sys.executable} -c 'import {self.module}'",
                )
        return Failure("timeout", "not asked any more")

    def _await_hello(self) -> Outcome | None:
        """The first message of a started process; None when the deadline passes first."""
        deadline = time.monotonic() + min(self.start_timeout_s, left_s())
        while time.monotonic() < deadline:
            answer = self.receive(max(0.0, deadline - time.monotonic()))
            if answer is not None:
                return answer
        return None if left_s() <= 0 else self.fail_timeout(self.start_timeout_s)

    def send(self, message: Message, deadline: float) -> Failure | None:
        """Write *message*; a Failure when the worker dies or stops reading before *deadline*."""
        view, begin = memoryview(encode(message)), time.monotonic()
        poll = select.poll()
        poll.register(self._to_worker, select.POLLOUT)
        while view:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return self.fail_timeout(deadline - begin)
            try:
                view = view[os.write(self._to_worker, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return self._fail_crash()
        return None

    def fileno(self) -> int:
        """The descriptor that becomes readable when there is something to receive."""
        return self._from_worker

    def receive(self, timeout_s: float) -> Outcome | None:
        """Return the next answer, a Failure if the worker died, or None after *timeout_s*."""
        try:
            message = self._decoder.take()
            if message is not None:
                return message
            poll = select.poll()
            poll.register(self._from_worker, select.POLLIN)
            if not poll.poll(timeout_s * 1000):
                return None
            data = os.read(self._from_worker, _READ_BYTES)
            if not data:
                return self._fail_crash()
            self._decoder.feed(data)
            return self._decoder.take()
        except ProtocolError as error:
            self.kill()
            return Failure("crash", f"the worker wrote junk instead of an answer: {error}")

    # Failures

    def fail_timeout(self, timeout_s: float) -> Failure:
        """Kill the worker because it did not answer within *timeout_s*."""
        said = self._said()
        self.kill()
        return Failure("timeout", _joined(f"no answer within {timeout_s:.3g} s", said))

    def _fail_crash(self) -> Failure:
        said = self._said()
        if self._process is not None:
            # The pipe closes a moment before the process has exited.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        return Failure("crash", _joined(_exit_text(self.kill()), said))

    def _said(self) -> str:
        """The end of the worker's stderr, where LLVM and libc explain their aborts."""
        if self._stderr is None:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _KEPT_STDERR_BYTES))
        return self._stderr.read().decode(errors="replace").strip()


def _tie(pid: int, watched: int) -> None:
    """Have the kernel kill *pid* when the other end of the pipe *watched* closes.

    Only the driver holds that end, and it never writes, so the end closes when the driver is gone.
    The worker's own request (PR_SET_PDEATHSIG) takes effect only once its interpreter runs, tens
    of milliseconds later; this mechanism needs only the descriptor that the worker inherited.
    """
    fcntl.fcntl(watched, fcntl.F_SETOWN, pid)
    fcntl.fcntl(watched, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(watched, fcntl.F_GETFL)
    fcntl.fcntl(watched, fcntl.F_SETFL, flags | os.O_ASYNC)


def _exit_text(status: int | None) -> str:
    if status is None:
        return "the worker is gone"
    if status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker ended with exit status {status} without an answer"


def _joined(reason: str, said: str) -> str:
    return f"{reason}\n{said}" if said else reason
