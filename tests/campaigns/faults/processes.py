"""Tuners as processes: started, killed, waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ROOT", "ended", "kill", "promised", "start", "until_gone", "workers"]

ROOT = str(Path(__file__).parents[3])
WORKER = b"ansorpy.measure.workers.worker"
_LIMIT_S = 240.0


def start(
    path: Path, trials: int, seed: int, *flags: str, before: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """A tuner at work on the database *path*, whose locks lie in the folder of ``TMPDIR`` beside.

    *before* is a command that starts it.
    """
    locks = path.parent / "locks"
    locks.mkdir(exist_ok=True)
    command = [*before, sys.executable, "-m", "tests.campaigns.faults.tuner", str(path)]
    return subprocess.Popen(
        [*command, "--trials", str(trials), "--seed", str(seed), *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ROOT, "TMPDIR": str(locks)},
    )  # fmt: skip


def ended(tuner: subprocess.Popen[str], status: int = 0) -> tuple[int, str]:
    """Wait for *tuner*, which must end with this *status* and leave no process.

    Returns the number of trials that it said were committed, and what it said was wrong.
    """
    try:
        said, complaint = tuner.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        tuner.kill()
        raise
    until_gone(tuner.pid)
    assert tuner.returncode == status, f"ended with {tuner.returncode}: {complaint}"
    assert "Traceback" not in complaint, complaint
    return promised(said), complaint


def kill(tuner: subprocess.Popen[str]) -> int:
    """Kill *tuner* with no chance to clean up; returns as :func:`ended` does.

    Raises:
        AssertionError: It leaves a process.
    """
    tuner.send_signal(signal.SIGKILL)
    said, _ = tuner.communicate(timeout=_LIMIT_S)
    until_gone(tuner.pid)
    return promised(said)


def promised(said: str) -> int:
    """The number of trials in the last whole line that a tuner printed."""
    lines = said[: said.rfind("\n") + 1].split()
    return max(map(int, lines), default=0)


def until_gone(parent: int) -> float:
    """Seconds until no worker of process *parent* is left; fails after five."""
    begin = time.monotonic()
    while workers(parent):
        assert time.monotonic() - begin < 5, f"left over: {workers(parent)}"
        time.sleep(0.001)
    return time.monotonic() - begin


def workers(parent: int) -> list[int]:
    """Processes that were started as workers of *parent*."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if WORKER in arguments and str(parent).encode() in arguments:
            found.append(int(folder.name))
    return found
