"""Handlers of a worker that does, on request, everything a worker must never do."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from ansorpy.errors import ScheduleError
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler


def _echo(message: Message) -> Message:
    return Message("echo", message.fields, message.blobs)


def _who(message: Message) -> Message:
    return Message(
        "who",
        {
            "pid": os.getpid(),
            "main": getattr(sys.modules["__main__"], "__file__", ""),
            "cores": sorted(os.sched_getaffinity(0)),
            "parent": os.getppid(),
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "threads": threading.active_count(),
        },
    )


def _sleep(message: Message) -> Message:
    time.sleep(float(str(message.fields["s"])))
    return Message("slept")


def _spin(message: Message) -> Message:
    while True:
        pass


def _work(message: Message) -> Message:
    """Compute until so many seconds of a core are used up."""
    while time.thread_time() < float(str(message.fields["s"])):
        pass
    return Message("worked")


def _deaf(message: Message) -> Message:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return _spin(message)


def _segfault(message: Message) -> Message:
    return Message("read", {"text": ctypes.string_at(16).decode()})


def _signal(message: Message) -> Message:
    os.kill(os.getpid(), int(str(message.fields["number"])))
    return Message("survived")


def _killed(message: Message) -> Message:
    """The system needs memory, unless there is the file *spared*."""
    spared = Path(str(message.fields["spared"]))
    if not spared.exists():
        spared.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Message("spared")


def _exit(message: Message) -> Message:
    os._exit(int(str(message.fields["status"])))


def _answers() -> int:
    """The descriptor of this worker's answers: the one pipe that is open for writing."""
    pipes = [int(name) for name in os.listdir("/proc/self/fd") if _is_pipe(f"/proc/self/fd/{name}")]
    [answers] = [pipe for pipe in pipes if fcntl.fcntl(pipe, fcntl.F_GETFL) & os.O_WRONLY]
    return answers


def _is_pipe(path: str) -> bool:
    return os.path.exists(path) and os.readlink(path).startswith("pipe:")


def _junk(message: Message) -> Message:
    """Write what is no message where answers go, then leave as if all were well."""
    os.write(_answers(), b"0.000123 seconds, trust me\n" * 10)
    os._exit(0)


def _torn(message: Message) -> Message:
    """Write the beginning of a good frame and leave."""
    os.write(_answers(), b"answ\x10")
    os._exit(0)


def _abort(message: Message) -> Message:
    print("LLVM ERROR: out of registers", file=sys.stderr, flush=True)
    os.abort()


def _print(message: Message) -> Message:
    """Print to both streams from native code: it must not end up between the answers."""
    os.write(1, b"a library greets you\n")
    os.write(2, b"and warns you\n")
    return Message("printed")


def _fail(message: Message) -> Message:
    raise ScheduleError("no such loop", hint="look again")


def _bug(message: Message) -> Message:
    return Message("quotient", {"value": 1 / 0})


def make_handlers() -> Mapping[str, Handler]:
    """The handlers, once there is the file that ``GATE`` names, if it does."""
    gate = os.environ.get("GATE")
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    return {
        "echo": _echo, "who": _who, "sleep": _sleep, "spin": _spin, "work": _work, "deaf": _deaf,
        "segfault": _segfault, "signal": _signal, "exit": _exit, "junk": _junk, "torn": _torn,
        "abort": _abort, "print": _print, "fail": _fail, "bug": _bug, "killed": _killed,
    }  # fmt: skip
