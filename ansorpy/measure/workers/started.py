"""Started worker processes with their pipes, and the resting ones that wait for another use.

Imports take a second of a worker's life.  So a process that finished its work without trouble is
left resting, and the next worker that would be started alike takes it over.
A resting process forgets its earlier work, and ends by itself with its driver or after
:data:`~ansorpy.measure.workers.worker.REST_S` seconds.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import ansorpy.measure.workers.worker
from ansorpy.measure.workers.protocol import Decoder, Message, encode
from ansorpy.measure.workers.worker import REST, REST_S, WAKE

__all__ = ["Kind", "Started", "started"]

_KEPT_STDERR_BYTES = 4000
_Key = tuple[object, ...]
"""The driver's process and thread, then all that the worker was started with.

A fork of the driver inherits the pipes of workers that are not its own.
"""


@dataclass(frozen=True)
class Kind:
    """The settings that a worker process is started with; those of one kind are interchangeable.

    Args:
        module: The module with the worker's ``make_handlers()``.
        cores: Cores that the worker is pinned to; None for the driver's.
        memory_bytes: Limit on its private memory (heap, stacks); None for no limit.
        environment: Variables added to the driver's environment.
    """

    module: str
    cores: tuple[int, ...] | None
    memory_bytes: int | None
    environment: Mapping[str, str]

    def variables(self) -> dict[str, str]:
        """The environment of the process: the driver's, with the package first on the path."""
        package_root = str(Path(ansorpy.__file__).parents[1])
        inherited = dict(os.environ)
        paths = [package_root, *filter(None, [inherited.get("PYTHONPATH")])]
        return {**inherited, "PYTHONPATH": os.pathsep.join(paths), **self.environment}


@dataclass
class Started:
    """A process and the driver's ends of its pipes; *decoder* reads its answers."""

    process: subprocess.Popen[bytes]
    to_worker: int
    from_worker: int
    lifeline: int
    stderr: IO[bytes]
    key: _Key
    decoder: Decoder = field(default_factory=Decoder)
    rests_since: float = 0.0

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stderr_tail(self) -> str:
        """The end of the worker's stderr, where LLVM and libc explain their aborts."""
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - _KEPT_STDERR_BYTES))
        return self.stderr.read().decode(errors="replace").strip()

    def close_files(self) -> None:
        for descriptor in (self.to_worker, self.from_worker, self.lifeline):
            os.close(descriptor)
        self.stderr.close()

    def rest(self) -> bool:
        """Keep the process for the next :func:`started` of its kind; no answer may be outstanding.

        Returns False if the process does not take the message.
        """
        if not self._send(REST):
            return False
        self.stderr.seek(0)
        self.stderr.truncate()
        self.rests_since = time.monotonic()
        _end_those_gone()
        _RESTING.setdefault(self.key, deque()).append(self)
        return True

    def wake(self) -> bool:
        """Have a resting process report that it is ready, as a new one does; False if it ended.

        One that will soon end by itself counts as ended: it might not read the message any more.
        """
        is_late = time.monotonic() - self.rests_since > 0.5 * REST_S
        return not is_late and self.is_alive and self._send(WAKE)

    def _send(self, kind: str) -> bool:
        """Send a message without content; False if it cannot be written at once."""
        data = encode(Message(kind, {}))
        try:
            return os.write(self.to_worker, data) == len(data)
        except (BlockingIOError, BrokenPipeError):
            return False

    def end(self) -> None:
        """Kill a resting process."""
        self.process.kill()
        self.process.wait()
        self.close_files()


_RESTING: dict[_Key, deque[Started]] = {}


def started(kind: Kind) -> Started:
    """A process of *kind*, resting before or new; it will report when it is ready."""
    variables = kind.variables()
    cores = kind.cores or tuple(sorted(os.sched_getaffinity(0)))
    folder = os.readlink("/proc/self/cwd")
    environment = tuple(sorted(variables.items()))
    # A worker dies with the thread that started it (PR_SET_PDEATHSIG), so others leave it alone.
    owner = os.getpid(), threading.get_native_id()
    key = *owner, kind.module, cores, kind.memory_bytes, folder, environment
    resting = _RESTING.get(key, deque())
    while (taken := _pop(resting)) is not None:
        if taken.wake():
            return taken
        taken.end()
    return _start(kind, variables, key)


def _pop(resting: deque[Started]) -> Started | None:
    try:
        return resting.pop()
    except IndexError:  # empty, perhaps since another thread took the last
        return None


def _end_those_gone() -> None:
    """Release what is held of the workers that ended because nobody woke them."""
    for resting in list(_RESTING.values()):
        for _ in range(len(resting)):
            worker = _pop(resting)
            if worker is not None and worker.is_alive:
                resting.appendleft(worker)
            elif worker is not None:
                worker.end()


def _start(kind: Kind, variables: Mapping[str, str], key: _Key) -> Started:
    child_in, to_worker = os.pipe()
    from_worker, child_out = os.pipe()
    watched, lifeline = os.pipe()
    os.set_blocking(to_worker, False)
    os.set_blocking(from_worker, False)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
    name = ansorpy.measure.workers.worker.__name__
    command = [sys.executable, "-P", "-m", name, str(child_in), str(child_out)]
    try:
        process = subprocess.Popen(
            [*command, str(os.getpid()), kind.module],
            stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
            pass_fds=(child_in, child_out, watched), start_new_session=True, env=variables,
        )  # fmt: skip
        _tie(process.pid, watched)
    except BaseException:
        for descriptor in (to_worker, from_worker, lifeline):
            os.close(descriptor)
        stderr.close()
        raise
    finally:
        for descriptor in (child_in, child_out, watched):
            os.close(descriptor)
    _restrict(process.pid, kind.cores, kind.memory_bytes)
    return Started(process, to_worker, from_worker, lifeline, stderr, key)


def _restrict(pid: int, cores: Sequence[int] | None, memory_bytes: int | None) -> None:
    """Pin and limit the process before its imports start any threads, which inherit both."""
    with suppress(ProcessLookupError):
        if cores is not None:
            os.sched_setaffinity(pid, cores)
        if memory_bytes is not None:
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


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


@atexit.register
def _end_resting() -> None:
    """End the resting workers of this process before the interpreter shuts down."""
    for key, resting in _RESTING.items():
        for worker in resting if key[0] == os.getpid() else ():
            worker.end()
