"""What the kernel says about processes, even when their IDs are reused, and about their cores."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

__all__ = [
    "described_process", "die_with_parent", "is_running", "process_identity", "queued_s",
    "stat_fields", "usable_cores",
]  # fmt: skip

_SHOWN = 80
"""Characters of a command line that are shown."""
_PR_SET_PDEATHSIG = 1


def process_identity(pid: int | None = None) -> str:
    """``boot id:pid:start time``: never the same for two processes of one machine."""
    number = os.getpid() if pid is None else pid
    return f"{_boot_id()}:{number}:{_start_ticks(number)}"


def is_running(identity: str) -> bool:
    """Whether the process with this identity is alive on this machine."""
    boot, _, rest = identity.partition(":")
    number, _, ticks = rest.partition(":")
    if boot != _boot_id() or not number.isdecimal():
        return False
    return _start_ticks(int(number)) == ticks


def described_process(pid: int) -> str:
    """``process 7 (its command line)``, shortened; without the command if it is unknown."""
    try:
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        parts = []
    text = " ".join(part.decode(errors="replace") for part in parts if part)
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return f"process {pid} ({shown})" if shown else f"process {pid}"


def die_with_parent(parent: int) -> None:
    """Have this process killed when *parent*, which started it, ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before prctl took effect.
        os._exit(0)


def usable_cores() -> list[int]:
    """The cores that this process may run on, by number."""
    return sorted(os.sched_getaffinity(0))


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def queued_s(pid: int, cores: int) -> dict[str, float]:
    """Seconds that each thread of *pid* waited for a core; only differences mean anything.

    Where the kernel does not count them, those in which *pid* did not run on all its *cores*.
    """
    waits = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            _, wait, times_run = map(int, path.read_text(encoding="ascii").split())
            if times_run:  # otherwise it is new, or a kernel that does not count says 0
                waits[path.parent.name] = wait * 1e-9
    return waits or {"all": time.monotonic() - _processor_s(pid) / cores}


def _processor_s(pid: int) -> float:
    """CPU seconds used by *pid* so far, over all threads; 0 when there is no such process."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _start_ticks(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty for no process or a zombie."""
    fields = stat_fields(pid)
    return "" if not fields or fields[0] in "ZX" else fields[19]


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third (state) on; empty when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The command in parentheses may contain spaces; the state is the first field after it.
    return text.rpartition(")")[2].split()
