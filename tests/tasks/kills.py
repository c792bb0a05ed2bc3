"""A tuner killed at random moments, again and again: ``python -m tests.tasks.kills --kills 20``.

After each kill: the database is intact, what was committed is there unchanged, and no process is
left.  In the end the budget is spent exactly, restarts included.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tasks.tuner import done

__all__ = ["kill_at_random", "main"]

ROOT = str(Path(__file__).parents[2])
WORKER = b"ansorpy.measure.workers.worker"


def kill_at_random(path: str, *, kills: int, trials: int, longest_s: float, seed: int) -> list[str]:
    """Kill *kills* tuners on the database *path*, let one finish; returns a line for each.

    Raises:
        AssertionError: Something was lost, left over or spent twice.
    """
    rng, lines = random.Random(seed), []
    for number in range(kills):
        before = done(path) if Path(path).exists() else {}
        tuner = start(path, trials, number)
        # From before its imports until deep inside a round.
        wait_s = rng.uniform(0.05, longest_s)
        time.sleep(wait_s)
        tuner.send_signal(signal.SIGKILL)
        said, _ = tuner.communicate()
        gone_s = until_gone(tuner.pid)
        after = done(path) if Path(path).exists() else {}
        promised = max([int(line) for line in said.split()], default=0)
        assert intact(path), "the database is damaged"
        assert len(after) >= promised, f"{promised} trials were committed, {len(after)} are there"
        assert {n: after.get(n) for n in before} == before, "a committed trial was lost or changed"
        lines.append(
            f"kill {number + 1} after {wait_s:.2f} s: {len(after)} trials, "
            f"workers gone in {gone_s * 1e3:.0f} ms"
        )
    tuner = start(path, trials, 99)
    said, _ = tuner.communicate(timeout=600)
    assert tuner.returncode == 0 and intact(path)
    assert until_gone(tuner.pid) < 1.0
    spent = len(done(path))
    assert spent == trials, f"{spent} trials were spent of {trials}"
    lines.append(f"finished: {spent} trials in {kills + 1} runs, budget {trials}")
    return lines


def start(path: str, trials: int, seed: int) -> subprocess.Popen[str]:
    """A tuner at work."""
    command = [sys.executable, "-m", "tests.tasks.tuner", path, "--trials", str(trials)]
    return subprocess.Popen(
        [*command, "--seed", str(seed)], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip


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


def intact(path: str) -> bool:
    """Whether SQLite finds the file intact; True if there is none yet."""
    if not Path(path).exists():
        return True
    with sqlite3.connect(path, timeout=60) as raw:
        found = raw.execute("PRAGMA integrity_check").fetchall()
    raw.close()
    return found == [("ok",)]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for line in kill_at_random(
            f"{folder}/tune.db", kills=given.kills, trials=given.trials,
            longest_s=given.longest, seed=given.seed,
        ):  # fmt: skip
            print(line)


if __name__ == "__main__":
    main()
