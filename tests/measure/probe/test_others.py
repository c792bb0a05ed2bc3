"""What a process and its descendants used, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, count, repeat
from pathlib import Path
from time import monotonic

import pytest

from ansorpy.measure.probe import others as probe
from ansorpy.measure.probe.others import OtherProcesses, SharedCores, family, processor_s
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of

BUSY = """
import time
while time.process_time() < 0.3:
    pass
"""
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY!r}])
print("one has ended", flush=True)
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
child.communicate(b"\\n")
"""


def test_descendants_count_alive_and_after_their_end() -> None:
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        assert parent.stdout.readline() == "one has ended\n"
        assert processor_s(parent.pid) >= 0.3
        child = int(parent.stdout.readline())
        assert family(parent.pid) == {parent.pid, child}
        parent.stdin.write("\n")
    assert parent.returncode == 0


def test_what_this_process_and_its_children_use_is_not_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used_s = {"busy": 50.0, "ours": 10.0}
    monkeypatch.setattr(probe, "busy_s", lambda: used_s["busy"])
    monkeypatch.setattr(probe, "processor_s", lambda _: used_s["ours"])
    observer = OtherProcesses()
    used_s |= {"busy": 58.0, "ours": 18.0}
    assert observer.busy_cores() == 0
    used_s["busy"] += 1.0
    assert observer.busy_cores() > 0


def test_others_are_those_that_this_process_did_not_start() -> None:
    orphan = f"import os, sys\nif os.fork():\n    sys.exit()\n{BUSY}\nprint(flush=True)"
    others = OtherProcesses()
    with subprocess.Popen([sys.executable, "-c", orphan], stdout=subprocess.PIPE, text=True) as p:
        p.wait()  # the fork is busy, and has no parent among us
        began = monotonic()
        others.busy_cores()
        assert p.stdout is not None and p.stdout.readline() == "\n"
        used_s = others.busy_cores() * (monotonic() - began)
    assert used_s > 0.15


@pytest.mark.parametrize(("busy", "threads", "warned"), [
    (0.5, 1, False),  # there is another core
    (0.2, 2, False),
    (0.5, 2, True),
    (1.5, 1, True),
])  # fmt: skip
def test_timing_on_shared_cores_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    busy: float,
    threads: int,
    warned: bool,
) -> None:
    moments = count(0.0, 4.0)
    monkeypatch.setattr(probe, "monotonic", lambda: next(moments))
    monkeypatch.setattr(OtherProcesses, "__init__", lambda self: setattr(self, "cores", 2))
    monkeypatch.setattr(OtherProcesses, "busy_cores", lambda _: busy)
    shared = SharedCores()
    for _ in range(9):
        with shared.observed(threads):
            pass
        assert not caplog.messages or warned
    assert len(caplog.messages) == warned
    assert all("share 0.5 cores with other processes" in line for line in caplog.messages)


def test_a_load_that_begins_late_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moments, loads = count(0.0, 6.0), chain(repeat(0.0, 20), repeat(1.0))
    monkeypatch.setattr(probe, "monotonic", lambda: next(moments))
    monkeypatch.setattr(OtherProcesses, "__init__", lambda self: setattr(self, "cores", 2))
    monkeypatch.setattr(OtherProcesses, "busy_cores", lambda _: next(loads))
    shared = SharedCores()
    for n in range(22):
        assert len(caplog.messages) == (n > 20)
        with shared.observed(2):
            pass


def test_a_runner_tells_of_what_shares_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(probe, "ENOUGH_S", 0.0)
    monkeypatch.setattr(OtherProcesses, "busy_cores", lambda self: self.cores)
    dag = matmul(24, 40, 36)
    with LocalRunner(MeasureOptions(lock_folder=tmp_path)) as runner:
        results = runner.measure(task_of(dag), [State.initial(dag)], incumbent_s=None)
    assert [result.ok for result in results] == [True]
    assert [line[:31] for line in caplog.messages] == ["timed programs share 1.0 cores "]
