"""Overlapping core sets exclude each other across processes; death releases."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ansorpy
from ansorpy.errors import AnsorpyError
from ansorpy.measure.locks import lock_cores

ROOT = str(Path(ansorpy.__file__).parents[1])

HOLDER = """
import sys
from pathlib import Path
from ansorpy.measure.locks import lock_cores
with lock_cores([int(c) for c in sys.argv[2].split(",")], Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path, cores: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), cores],
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


def test_a_folder_that_cannot_be_written_is_one_plain_error(tmp_path):
    with pytest.raises(AnsorpyError, match="cannot lock a core"), lock_cores([0], tmp_path / "no"):
        pass
