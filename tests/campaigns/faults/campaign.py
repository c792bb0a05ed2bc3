"""Faults while tuning: nothing committed is lost or counted twice, and nothing is left behind."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import numpy as np

from ansorpy.errors import ForeignFile
from tests.campaigns.campaign import Campaign
from tests.campaigns.faults.bad_workers import BUILDING, RUNNING, fault_of
from tests.campaigns.faults.checks import (
    Kept,
    assert_replays,
    assert_unlocked,
    decided,
    undisturbed,
)
from tests.campaigns.faults.command_line import TRIALS, command, succeeded, tuning
from tests.campaigns.faults.commits import commit_under_kills
from tests.campaigns.faults.nodes import lost_nodes
from tests.campaigns.faults.processes import ended, kill, promised, start, workers

__all__ = ["FAULTS"]

_TRIALS = 16
_SEEDS = 2
"""Tuners differ by these many seeds, so that few have to run undisturbed for comparison."""

_LONGEST_S = 6.0
"""Until a tuner is killed: from before its imports until deep inside a round."""


class _Case:
    """A tuner's database in a folder of its own."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder = random.Random(int(rng.integers(1 << 62))), folder
        self.path = folder / "tune.db"
        self.seed = self.rng.randrange(_SEEDS)
        self.kept = Kept(self.path)

    def start(self, *flags: str) -> subprocess.Popen[str]:
        return start(self.path, _TRIALS, self.seed, *flags)

    def wait(self, tuner: subprocess.Popen[str]) -> int:
        """Wait for a random moment; returns the number of trials that *tuner* has reported.

        Mostly it is right after a trial or in the next one; else any, from before its imports.
        """
        assert tuner.stdout is not None
        if self.rng.random() < 0.25:
            time.sleep(self.rng.uniform(0.05, _LONGEST_S))
            return 0
        lines = [tuner.stdout.readline() for _ in range(self.rng.randrange(1, 4))]
        time.sleep(self.rng.choice([0.0, self.rng.uniform(0.0, 0.5)]))
        return promised("".join(lines))

    def finish(self, tuner: subprocess.Popen[str]) -> None:
        """Let *tuner* spend the budget, and check what is left."""
        committed, _ = ended(tuner)
        self.kept.check(committed, _TRIALS)
        assert_unlocked(self.folder / "locks")
        assert_replays(self.path, self.seed)

    def assert_decided_alike(self) -> None:
        """The first run decided what an undisturbed one does, as far as it came."""
        ours, theirs = decided(self.path, 1), undisturbed(_TRIALS, self.seed)
        assert ours == theirs[: len(ours)], _first_difference(ours, theirs)


def _first_difference(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> str:
    pairs = enumerate(zip(ours, theirs, strict=False))
    found = next(((n, pair) for n, pair in pairs if pair[0] != pair[1]), None)
    return f"event {found[0] + 1}: {found[1]}" if found else "there are more events"


def _commits_killed(case: _Case) -> None:
    """A process that does nothing but commit is killed, from before the file is there."""
    commit_under_kills(case.path, case.rng)


def _killed(case: _Case) -> None:
    """Six kills, then a run to the end, which decides what one decides from a copy."""
    for _ in range(6):
        tuner = case.start()
        seen = case.wait(tuner)
        case.kept.check(max(seen, kill(tuner)))
        assert_unlocked(case.folder / "locks")
        if case.path.exists():
            assert_replays(case.path, case.seed)
    case.assert_decided_alike()
    copy = case.folder / "copy" / "tune.db"
    copy.parent.mkdir()
    _copy(case.path, copy)
    case.finish(case.start())
    ended(start(copy, _TRIALS, case.seed))
    last = _sessions(case.path)
    assert last == _sessions(copy) and decided(case.path, last) == decided(copy, last)


def _command_killed(case: _Case) -> None:
    """``ansorpy tune`` is killed twice, and run to the end; its run replays to the same bytes."""
    case.path = case.folder / "t.db"
    case.kept = Kept(case.path)
    for _ in range(2):
        tuner = tuning(case.folder)
        time.sleep(case.rng.uniform(0.05, 2 * _LONGEST_S))
        kill(tuner)
        case.kept.check()
    succeeded(tuning(case.folder))
    case.kept.check(spent=TRIALS)
    assert_unlocked(case.folder)
    assert "same history" in succeeded(command(case.folder, "db", "replay"))


def _copy(path: Path, to: Path) -> None:
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            copyfile(path.with_name(path.name + suffix), to.with_name(to.name + suffix))


def _sessions(path: Path) -> int:
    with closing(sqlite3.connect(path)) as raw:
        return int(raw.execute("SELECT max(id) FROM sessions").fetchone()[0])


def _workers_killed(case: _Case) -> None:
    """Nine kills of workers: the driver goes on, unless it cannot start one twice in a row."""
    kills = 9
    while kills:
        tuner = case.start()
        while tuner.poll() is None and kills:
            time.sleep(case.rng.uniform(0.1, 2.0))
            if found := workers(tuner.pid):
                kills -= 1
                with suppress(ProcessLookupError):
                    os.kill(case.rng.choice(found), signal.SIGKILL)
        said, complaint = tuner.communicate(timeout=200)
        assert tuner.returncode == 0 or "a measurement worker cannot start" in complaint, complaint
        case.kept.check(promised(said))
        if tuner.returncode == 0:
            break
    case.finish(case.start())


def _disk_full(case: _Case) -> None:
    """The file system of the database fills up; with more room the run goes on."""
    with _small_disk(case.folder / "disk", 100 + case.rng.randrange(600)) as grow:
        case.path = case.folder / "disk" / "tune.db"
        case.kept = Kept(case.path)
        _refused_then_finished(case, case.start(), grow, "full")


def _files_limited(case: _Case) -> None:
    """No file may grow beyond some size (``ulimit -f``): a write fails in the middle."""
    limit = 1024 * (64 + case.rng.randrange(436))
    tuner = case.start()
    resource.prlimit(tuner.pid, resource.RLIMIT_FSIZE, (limit, limit))
    _refused_then_finished(case, tuner, lambda: None, "I/O error", "full")


def _refused_then_finished(
    case: _Case, tuner: subprocess.Popen[str], mend: Callable[[], None], *reasons: str
) -> None:
    """*tuner* ends with a message that gives a *reason*; once that is gone, another goes on."""
    committed, complaint = ended(tuner, ForeignFile.exit_code)
    assert any(word in complaint for word in reasons), complaint
    mend()
    case.kept.check(committed)
    case.assert_decided_alike()
    case.finish(case.start())


@contextmanager
def _small_disk(place: Path, kib: int) -> Iterator[Callable[[], None]]:
    """A file system of its own at *place*; yields what makes it large."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(place)], check=True)
    try:
        grow = ["mount", "-o", "remount,size=64m", str(place)]
        yield lambda: subprocess.run(grow, check=True).check_returncode()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _locked(case: _Case) -> None:
    """Another process locks the database for seconds, again and again: the tuner waits."""
    tuner = case.start()
    while tuner.poll() is None:
        time.sleep(case.rng.uniform(0.2, 1.0))
        if case.path.exists():
            _hold_lock(case.path, case.rng.uniform(0.5, 3.0))
    case.finish(tuner)
    case.assert_decided_alike()


def _locked_for_long(case: _Case) -> None:
    """A lock that outlasts the tuner's patience ends it with one message."""
    tuner = case.start()
    while not case.path.exists() or not case.path.stat().st_size:
        time.sleep(0.05)
    time.sleep(case.rng.uniform(0.0, 3.0))
    with closing(sqlite3.connect(case.path, timeout=60, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        committed, complaint = ended(tuner, ForeignFile.exit_code)
        raw.execute("ROLLBACK")
    assert "locked" in complaint, complaint
    case.kept.check(committed)
    case.assert_decided_alike()
    case.finish(case.start())


def _hold_lock(path: Path, seconds: float) -> None:
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        raw.execute("ROLLBACK")


def _clock_back(case: _Case) -> None:
    """The clock of the machine is set back, by days or months, again and again."""
    case.finish(case.start("--clock-back"))
    case.assert_decided_alike()


def _bad_workers(case: _Case) -> None:
    """Workers hang, die, fill their memory and lie: each trial ends as what was done to it."""
    case.finish(case.start("--bad-workers"))
    with closing(sqlite3.connect(case.path)) as raw:
        rows = raw.execute(
            "SELECT steps, object_digest, kind, reason FROM trials JOIN results"
            " ON trial = trials.id WHERE scale IS NULL"
        ).fetchall()
    assert any(kind != "ok" for _, _, kind, _ in rows), "no program met a fault"
    for steps, code, kind, reason in rows:
        building, running = fault_of(steps.encode(), BUILDING), fault_of(code.encode(), RUNNING)
        allowed = {k.value for k in BUILDING.get(building, ())}
        if building in ("", "swap"):
            allowed |= {k.value for k in RUNNING.get(running, ())}
        assert kind in (allowed or {"ok"}), f"{building}, {running}: {kind}, {reason}"


def _nodes_lost(case: _Case) -> None:
    """Machines of a fleet are lost at any moment."""
    lost_nodes(case.path, case.seed, case.rng)
    case.kept.check()


_KILLED = (("driver killed 6 times", _killed),) * 3

KINDS: tuple[tuple[str, Callable[[_Case], None]], ...] = (
    ("nodes lost", _nodes_lost),
    ("commits killed 15 times", _commits_killed),
    *_KILLED,
    ("workers killed 9 times", _workers_killed),
    ("bad workers", _bad_workers),
    *_KILLED,
    ("disk full", _disk_full) if os.geteuid() == 0 else ("files limited", _files_limited),
    ("files limited", _files_limited),
    *_KILLED,
    ("workers killed 9 times", _workers_killed),
    ("database locked", _locked),
    *_KILLED,
    ("clock set back", _clock_back),
    ("workers killed 9 times", _workers_killed),
    ("database locked for over a minute", _locked_for_long),
    ("command killed twice", _command_killed),
    *(("commits killed 15 times", _commits_killed),) * 3,
)
"""In turn by number: 161 kills in one turn of all."""


def _case(rng: np.random.Generator, number: int) -> str:
    name, run = KINDS[number % len(KINDS)]
    with TemporaryDirectory(prefix="ansorpy-faults-", ignore_cleanup_errors=True) as folder:
        run(_Case(rng, Path(folder)))
    return name


FAULTS = Campaign(
    "disturbs small tuners by kills, full disks, locks, clocks, bad workers and lost machines",
    _case,
    short=2,
    limit_s=900.0,
)
