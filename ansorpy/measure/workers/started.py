"""Started worker processes with their pipes, and the fork server that starts them.

A driver has one fork server (:mod:`ansorpy.measure.workers.fork_server`), started with the first
worker or before it (:func:`start_server`).
"""

from __future__ import annotations

import atexit
import fcntl
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers import fork_server
from ansorpy.measure.workers.fork_server import MOST_BYTES, Order
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.measure.workers.protocol import Decoder

__all__ = ["Kind", "Process", "Started", "start_server", "started"]

_KEPT_STDERR_BYTES = 4000
_ANNOUNCED_S = 60.0
"""Seconds within which the fork server, which may have its imports to do, starts a worker."""


@dataclass(frozen=True)
class Kind:
    """The settings that a worker process is started with.

    Args:
        module: The module with the worker's ``make_handlers()``.
        cores: Cores that the worker is pinned to; None for the driver's.
        memory_bytes: Limit on its private memory (heap, stacks); None for no limit.
        environment: Variables added to the driver's environment, for modules that read them when
            the worker is asked something: libraries may have read theirs before.
    """

    module: str
    cores: tuple[int, ...] | None
    memory_bytes: int | None
    environment: Mapping[str, str]


class Process:
    """A worker process, of which the fork server tells on the socket *status*."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._pid: int | None = None
        self._pidfd = -1
        self._has_ended = False
        self.exit_status: int | None = None
        """The exit status once it has ended, negative for a signal; None if nobody knows it."""

    @property
    def pid(self) -> int:
        """Its number; waits until the server has started it.

        Raises:
            AnsorpyError: It did not within a minute.
        """
        deadline = time.monotonic() + _ANNOUNCED_S
        while self._pid is None and not self._has_ended:
            if not self._listen(deadline - time.monotonic()):
                raise AnsorpyError(f"no measurement worker started within {_ANNOUNCED_S:.0f} s")
        return self._pid or 0

    def is_running(self) -> bool:
        while not self._has_ended and self._listen(0.0):
            pass
        return not self._has_ended

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, at most *timeout_s*; returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while not self._has_ended and self._listen(deadline - time.monotonic()):
            pass
        return self._has_ended

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.pid and not self._has_ended:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Hear no more of it; the server kills it if it is not started yet."""
        self._status.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _listen(self, timeout_s: float) -> bool:
        """Take one message of the server; returns False if none came within *timeout_s*."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(max(0.0, timeout_s) * 1000):
            return False
        data, descriptors, _, _ = socket.recv_fds(
            self._status, MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC
        )
        if data and self._pid is None:
            self._pid, [self._pidfd] = int(data), descriptors
        else:
            self._has_ended = True
            self.exit_status = int(data) if data else None
        return True


@dataclass
class Started:
    """A process and the driver's ends of its pipes; *decoder* reads its answers."""

    process: Process
    to_worker: int
    from_worker: int
    stderr: IO[bytes]
    decoder: Decoder = field(default_factory=Decoder)

    def stderr_tail(self) -> str:
        """The end of the worker's stderr, where LLVM and libc explain their aborts."""
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - _KEPT_STDERR_BYTES))
        return self.stderr.read().decode(errors="replace").strip()

    def close(self) -> None:
        """Close all that leads to the process."""
        self.process.close()
        os.close(self.to_worker)
        os.close(self.from_worker)
        self.stderr.close()


def started(kind: Kind) -> Started:
    """A new process of *kind*, which will report when it is ready."""
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
    status, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child_in, to_worker = os.pipe()
    from_worker, child_out = os.pipe()
    folder = os.open(".", os.O_PATH)
    os.set_blocking(to_worker, False)
    os.set_blocking(from_worker, False)
    result = Started(Process(status), to_worker, from_worker, stderr)
    try:
        _order(kind, [child_in, child_out, stderr.fileno(), folder, told.fileno()])
    except BaseException:
        result.close()
        raise
    finally:
        told.close()
        for descriptor in (child_in, child_out, folder):
            os.close(descriptor)
    return result


def start_server() -> None:
    """Start the fork server, if it is not running, before the first worker is needed.

    Returns at once: the server's imports overlap with what the driver does next.
    """
    with _LOCK:
        _running()


def _order(kind: Kind, descriptors: list[int]) -> None:
    """Have the fork server of this process start a worker; it is started if need be."""
    with _LOCK:
        server = _running()
        order = Order(
            module=kind.module,
            cores=kind.cores or tuple(usable_cores()),
            memory_bytes=kind.memory_bytes,
            environment={**server.changed_variables(), **kind.environment},
        )
        socket.send_fds(server.requests, [order.model_dump_json().encode()], descriptors)


def _running() -> _Server:
    """The fork server of this process, which is started if need be."""
    if not _SERVER or not _SERVER[-1].is_running():
        _SERVER[:] = [_start()]
    return _SERVER[-1]


@dataclass(frozen=True)
class _Server:
    """A fork server of the process *driver*, which had the variables *environment* then.

    *lifeline* is the driver's end of a pipe: see :func:`_tie`.
    """

    process: subprocess.Popen[bytes]
    requests: socket.socket
    lifeline: IO[bytes]
    driver: int
    environment: Mapping[str, str]

    def is_running(self) -> bool:
        """Whether it serves this process; a fork of the driver inherits the object only."""
        return self.driver == os.getpid() and self.process.poll() is None

    def changed_variables(self) -> dict[str, str | None]:
        """The variables that the driver has set since, and those it has removed (None)."""
        now, then = os.environ, self.environment
        removed: dict[str, str | None] = dict.fromkeys(then.keys() - now.keys())
        return removed | {name: now[name] for name in now if now[name] != then.get(name)}


_SERVER: list[_Server] = []
"""The fork server, once there is one."""
_DESCRIPTORS = 1 << 14
_LOCK = threading.Lock()


def _start() -> _Server:
    _allow_descriptors()
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    watched, lifeline = os.pipe()
    environment, driver = dict(os.environ), os.getpid()
    paths = [
        str(Path(fork_server.__file__).parents[3]),
        *filter(None, [environment.get("PYTHONPATH")]),
    ]
    # numpy's own threads would compete with a kernel's for the cores, and do not survive a fork.
    ours = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", fork_server.__name__, str(theirs.fileno()), str(driver)]
    with theirs, os.fdopen(watched):
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), watched), start_new_session=True,
            env={**environment, **ours},
        )  # fmt: skip
        _tie(process.pid, watched)
    return _Server(process, requests, os.fdopen(lifeline, "wb"), driver, environment)


def _allow_descriptors() -> None:
    """Let this process and its server have :data:`_DESCRIPTORS` open files, if the system does.

    Each worker takes five here: the usual soft limit of 1024 is too low for the builders of a
    machine with 224 cores.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _DESCRIPTORS)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _tie(pid: int, watched: int) -> None:
    """Have the kernel kill *pid* when the other end of the pipe *watched* closes.

    Only the driver holds that end, and it never writes, so the end closes when the driver is gone.
    The server notices the end of its driver only once its imports are done; this mechanism needs
    only the descriptor that the server inherited.
    """
    fcntl.fcntl(watched, fcntl.F_SETOWN, pid)
    fcntl.fcntl(watched, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(watched, fcntl.F_GETFL)
    fcntl.fcntl(watched, fcntl.F_SETFL, flags | os.O_ASYNC)


@atexit.register
def _end() -> None:
    """End the fork server of this process, and with it all workers, before the interpreter does."""
    for server in _SERVER:
        if server.is_running():
            server.process.kill()
            server.process.wait()
