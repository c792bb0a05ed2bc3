"""Overlapping core sets exclude each other across processes; a dead process releases its set."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ansorpy
from ansorpy.deadline import OutOfTime, until
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers import locks
from ansorpy.measure.workers.locks import lock_cores
from tests.waiting import comes_true

ROOT = str(Path(ansorpy.__file__).parents[1])

HOLDER = """
import sys
from pathlib import Path
from ansorpy.measure.workers.locks import lock_cores
cores = [int(c) for c in sys.argv[2].split(",")]
with lock_cores(cores, Path(sys.argv[1]), shared=len(sys.argv) > 3):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path, cores: str, *shared: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), cores, *shared],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip


def test_overlapping_sets_wait_and_disjoint_ones_do_not(tmp_path):
    with lock_cores([1, 0], tmp_path):
        other, waiting = holder(tmp_path, "2,3"), holder(tmp_path, "1,2")
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
    other.kill()
    assert waiting.stdout is not None and waiting.stdout.readline() == "held\n"
    waiting.kill()
    for process in (other, waiting):
        process.communicate()
    with lock_cores([0, 1, 2, 3], tmp_path):
        pass


def held(process: subprocess.Popen[str], within_s: float) -> bool:
    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], within_s)[0])


def test_those_who_compute_share_and_those_who_time_are_alone(tmp_path):
    with lock_cores([0, 1], tmp_path, shared=True):
        computing = holder(tmp_path, "1,2", "shared")
        assert held(computing, 30)
        timing = holder(tmp_path, "1")
        assert not held(timing, 0.5)
        # Who comes later does not overtake the one that waits, or it might wait for ever.
        later = holder(tmp_path, "1", "shared")
        assert not held(later, 0.5)
        computing.communicate("")
        assert not held(timing, 0.2)
    assert held(timing, 30) and not held(later, 0.2)
    timing.communicate("")
    assert held(later, 30)
    later.communicate("")


def test_waiting_ends_at_the_deadline_and_leaves_nothing_behind(tmp_path):
    other = holder(tmp_path, "1")
    assert held(other, 30)
    with pytest.raises(OutOfTime), until(time.monotonic() + 0.2), lock_cores([0, 1], tmp_path):
        pytest.fail("another process has core 1")
    with until(time.monotonic()), lock_cores([0], tmp_path):
        pass  # what nobody has needs no waiting
    later = holder(tmp_path, "0,1")
    assert not held(later, 0.3)
    other.communicate("")
    assert held(later, 30), "who gave up holds what came to it since"
    later.communicate("")


def test_a_lock_that_comes_before_the_deadline_is_held(tmp_path):
    other = holder(tmp_path, "0")
    assert held(other, 30)
    threading.Timer(0.3, other.communicate, ("",)).start()
    with until(time.monotonic() + 60), lock_cores([0], tmp_path):
        later = holder(tmp_path, "0")
        assert not held(later, 0.5)
    assert held(later, 30)
    later.communicate("")


def test_who_waits_says_for_whom_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE_S", 0.1)
    with lock_cores([0, 1], tmp_path):
        pass
    assert not caplog.messages, "nobody was waited for"
    other = holder(tmp_path, "0,1")
    assert held(other, 30)
    for core in (0, 1):
        timing = threading.Thread(target=taken, args=(core, tmp_path))
        timing.start()
        assert comes_true(lambda: bool(caplog.messages))
        timing.join(0.3)
        assert timing.is_alive()
    other.communicate("")
    [said] = caplog.messages
    assert said.startswith(f"waiting for process {other.pid} ({sys.executable}")
    assert said.endswith(", which is using core 0: only one process at a time may measure there")


def test_a_thread_of_the_same_process_is_not_named(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE_S", 0.05)
    timing = threading.Thread(target=taken, args=(0, tmp_path))
    with lock_cores([0], tmp_path, shared=True):
        timing.start()
        timing.join(0.3)
        assert timing.is_alive()
    timing.join()
    assert not caplog.messages


def taken(core: int, folder: Path) -> None:
    with lock_cores([core], folder):
        pass


def test_a_holder_is_named_once_and_may_be_unknown(caplog, monkeypatch):
    log = locks.WaitLog()
    for pids in ([7, 9], [9], [11], [], []):
        monkeypatch.setattr(locks, "holders", lambda descriptor, pids=pids: pids)
        monkeypatch.setattr(locks, "described_process", lambda pid: f"process {pid} (tune {pid})")
        log.name_holders(0, "core 3")
    said = [message.partition(", which is using")[0] for message in caplog.messages]
    assert said == [
        "waiting for process 7 (tune 7), process 9 (tune 9)", "waiting for process 11 (tune 11)",
        "waiting for another process",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_written_is_one_plain_error(tmp_path):
    with (
        pytest.raises(AnsorpyError, match="cannot lock a core or GPU"),
        lock_cores([0], tmp_path / "no"),
    ):
        pass


def test_a_process_forked_meanwhile_keeps_no_lock(tmp_path):
    with lock_cores([0], tmp_path):
        child = os.fork()
        if not child:
            signal.pause()
            os._exit(1)
    try:
        other = holder(tmp_path, "0")
        assert held(other, 30)
        other.communicate("")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
