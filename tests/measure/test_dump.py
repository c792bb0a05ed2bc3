"""ANSORPY_DUMP: what is built can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target


def test_built_programs_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORPY_DUMP", str(tmp_path / "dump"))
    a = placeholder((7,), name="A")
    state = State.initial([a, compute((7,), lambda i: a[i] * 2.0, name="B")])
    build_lowered(lower(state), Target.host(), "kernel")
    [program, module] = sorted((tmp_path / "dump").iterdir(), key=lambda p: p.suffix, reverse=True)
    assert "B[i] = A[i] * 2.0" in program.read_text()
    assert "define" in module.read_text()


def test_a_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANSORPY_DUMP", str(tmp_path / "file" / "dump"))
    with pytest.raises(UsageError, match="cannot write .*/file/dump"):
        Builder(1)


def test_a_full_disk_does_not_fail_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANSORPY_DUMP", str(tmp_path / "file"))
    a = placeholder((7,), name="A")
    state = State.initial([a, compute((7,), lambda i: a[i] * 2.0, name="B")])
    assert build_lowered(lower(state), Target.host(), "kernel").run.code
    assert "file lacks a program" in caplog.text
