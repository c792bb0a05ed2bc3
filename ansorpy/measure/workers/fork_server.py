"""The fork server: ``python -m ansorpy.measure.workers.fork_server REQUESTS DRIVER``.

Imports take most of a second of a worker's life.  This process imports once what workers share, and
each worker is a fork of it, ready in a few milliseconds.  It serves the process DRIVER, which is
its parent, and dies with it.  It starts no thread and does no work, so that its forks start clean.

A request is a packet on the socket REQUESTS: the worker's :class:`Order` as JSON, and the
descriptors of :data:`DESCRIPTORS`.  On the last of them the server sends the worker's pid with a
pidfd, and at its end the exit status (negative: a signal).
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ansorpy.measure.workers import worker
from ansorpy.measure.workers.processes import die_with_parent

__all__ = ["DESCRIPTORS", "MOST_BYTES", "PRELOADED", "Order", "main"]

DESCRIPTORS = ("requests", "answers", "stderr", "folder", "status")
"""What is sent along: the worker's two pipes, its stderr and working folder, and a socket."""
MOST_BYTES = 1 << 16
PRELOADED: tuple[str, ...] = (
    "ansorpy.measure.run.handlers",
    "ansorpy.measure.build.handlers",
    "ansorpy.measure.proofs.handlers",
    "ansorpy.tasks.predict_handlers",
    # What these load when they are first asked:
    "ansorpy.codegen.llvm.generator",
    "ansorpy.measure.cpu_devices",
    "ansorpy.targets.llvm",
    "islpy",
    "lightgbm",
    "llvmlite.binding",
)
_GARBAGE = 50_000
"""Objects that a worker makes between two collections.  Python's 700 costs a twentieth of the time
of predictions, which make hardly any cycles."""


class Order(BaseModel):
    """The settings of a worker; *environment* has variables to set, and to remove (None)."""

    model_config = ConfigDict(frozen=True)

    module: str
    cores: tuple[int, ...]
    memory_bytes: int | None
    environment: Mapping[str, str | None]


class _Work(NamedTuple):
    """What a fork does once it has left the server's loop."""

    module: str
    requests: int
    answers: int


def main(argv: list[str]) -> int:
    """Serve until the driver closes its end and the last worker ended; returns the exit status."""
    requests, driver = int(argv[0]), int(argv[1])
    # Threads of imported libraries, as Arrow's allocator has, are idle and prepared for forks.
    warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
    gc.disable()  # what is imported stays
    for module in PRELOADED:
        # The worker that needs it will say why it cannot be imported.
        with suppress(Exception):
            importlib.import_module(module)
    gc.freeze()
    work = _Server(socket.socket(fileno=requests), driver).serve()
    gc.set_threshold(_GARBAGE)
    gc.enable()
    return 0 if work is None else worker.main(*work)


class _Server:
    """The loop of the server, which its forks leave with their work."""

    def __init__(self, requests: socket.socket, driver: int) -> None:
        self._requests = requests
        # A pidfd ends with the driver even if a fork of the driver keeps the other end open.
        self._driver = os.pidfd_open(driver)
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._status: dict[int, socket.socket] = {}
        """The sockets of the running workers, by pid."""
        self._is_alone = os.getppid() != driver

    def serve(self) -> _Work | None:
        """Fork and report; returns work in each fork, and None in the server at its end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        poll = select.poll()
        for source in (self._requests.fileno(), self._driver, self._woken):
            poll.register(source, select.POLLIN)
        is_open = True
        while (is_open or self._status) and not self._is_alone:
            ready = {source for source, _ in poll.poll()}
            self._is_alone = self._driver in ready
            if self._woken in ready:
                os.read(self._woken, MOST_BYTES)
                self._report()
            if self._requests.fileno() in ready:
                data, given, _, _ = socket.recv_fds(
                    self._requests, MOST_BYTES, len(DESCRIPTORS), socket.MSG_CMSG_CLOEXEC
                )
                if not data:
                    is_open = False
                    poll.unregister(self._requests)
                    continue
                work = self._forked(Order.model_validate_json(data), given)
                if work is not None:
                    return work
        # The kernel kills the workers that are left.
        return None

    def _forked(self, order: Order, given: list[int]) -> _Work | None:
        """Start a worker; returns its work in the fork, None in the server."""
        requests, answers, stderr, folder, told = given
        status = socket.socket(fileno=told)
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # too many processes, or too little memory
            os.write(stderr, f"fork: {error}\n".encode())
            pid = -1
        if pid == 0:
            self._leave()
            status.close()
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            os.fchdir(folder)
            os.close(stderr)
            os.close(folder)
            _isolate(server)
            _restrict(order)
            return _Work(order.module, requests, answers)
        for descriptor in (requests, answers, stderr, folder):
            os.close(descriptor)
        if pid < 0:
            status.close()  # which tells the driver that there is no worker
        else:
            self._announce(pid, status)
        return None

    def _announce(self, pid: int, status: socket.socket) -> None:
        """Tell the driver of a worker that was started."""
        self._status[pid] = status
        descriptor = os.pidfd_open(pid)
        try:
            socket.send_fds(status, [str(pid).encode()], [descriptor])
        except OSError:  # the driver wants it no more
            os.kill(pid, signal.SIGKILL)
        os.close(descriptor)

    def _report(self) -> None:
        """Tell the driver of the workers that ended."""
        while self._status:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._status.pop(pid) as told, suppress(OSError):
                told.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _leave(self) -> None:
        """Drop what is the server's, in a fork of it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.close()
        for descriptor in (self._driver, self._woken, self._wake):
            os.close(descriptor)
        for status in self._status.values():
            status.close()


def _isolate(parent: int) -> None:
    """Die with *parent*, write no core file, and be the first to be killed when memory runs out.

    A session of its own keeps Ctrl-C in a terminal from it.
    """
    die_with_parent(parent)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _restrict(order: Order) -> None:
    """Pin and limit the fork before it starts any threads, which inherit both."""
    os.sched_setaffinity(0, order.cores)
    if order.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
    for name, value in order.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
