"""The smoke stage runs all its checks, whatever one of them meets with, and resumes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic

import pytest

from ansorpy.errors import ForeignFile
from benchmarks.cuda.smoke import stage
from benchmarks.cuda.smoke.checks import CHECKS
from benchmarks.cuda.smoke.stage import Checked, SmokeRun, check_all, check_one
from benchmarks.cuda.summary import file_of, summary
from tests.benchmarks.cuda.simulated_smoke import checked

QUICK, SIMULATED = (f"tests.benchmarks.cuda.{name}" for name in ("quick", "simulated_smoke"))
LACKING = {
    name for name in CHECKS if name.startswith(("code.wgmma", "code.boxes", "code.clusters"))
} | {
    "runtime.arrays",
    "runtime.model",
}
"""What the simulated GPU does not have."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Only these checks, in this order."""
    names = ["driver.memory", "code.wgmma.float16"]
    monkeypatch.setattr(stage, "CHECKS", {name: CHECKS[name] for name in names})
    return names


@pytest.mark.parametrize("name", CHECKS)
def test_checks_pass_on_a_simulated_gpu(name: str) -> None:
    found = checked(name)
    assert found.outcome == ("skipped" if name in LACKING else "ok"), found.line


def test_a_check_that_fails_says_why() -> None:
    def broken() -> None:
        raise OSError("no such device\nat all")

    found = check_one("driver.memory", broken)  # type: ignore[arg-type]
    assert found.outcome == "failed" and found.said == "OSError: no such device | at all"


def test_a_process_that_dies_does_not_stop_the_others(
    few: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    file = tmp_path / "build" / "smoke.json"
    monkeypatch.setenv("ANSORPY_TEST_DIES_IN", "driver.memory")
    run = check_all(SmokeRun(gpu="GPU").resumed(file), file, module=QUICK)
    assert [c.outcome for c in run.checks] == ["failed", "skipped"] and run.failed
    assert "the process ended with -6" in run.checks[0].said
    said = capsys.readouterr().err
    assert [line.split(":")[0] for line in said.splitlines()] == few
    monkeypatch.delenv("ANSORPY_TEST_DIES_IN")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    resumed = check_all(SmokeRun(gpu="GPU").resumed(file), file, module=QUICK)
    assert [c.outcome for c in resumed.checks] == ["failed", "failed"], "both are tried again"
    checks = [Checked(name=name, outcome="ok") for name in few]
    held = check_all(SmokeRun(gpu="GPU", checks=checks), file, module=QUICK)
    assert not held.failed, "what was ok is not"


def test_a_check_that_hangs_has_failed(few: list[str], tmp_path: Path) -> None:
    run = check_all(SmokeRun(gpu="GPU"), tmp_path / "a.json", module=SIMULATED, limit_s=0.01)
    assert {c.outcome for c in run.checks} == {"failed"}
    assert "no answer within" in run.checks[0].said


def test_checks_that_the_stages_end_cuts_wait_for_another_time(
    few: list[str], tmp_path: Path, capsys
) -> None:
    end = monotonic() + 0.05
    file = file_of(tmp_path / "a.json", "smoke")
    run = check_all(SmokeRun(gpu="GPU"), file, module=SIMULATED, end=end)
    assert not run.checks and run.waiting == few
    lines, is_sound = summary(tmp_path / "a.json")
    assert not is_sound and lines[-1] == f"  no time for 2: {', '.join(few)}"
    assert capsys.readouterr().err.splitlines() == [f"{name}: no time left" for name in few]


def test_checks_side_by_side_share_the_cores(
    few: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    affinity = os.sched_getaffinity(0)
    run = check_all(SmokeRun(gpu="GPU"), tmp_path / "a.json", module=QUICK, jobs=2)
    assert {c.name: c.outcome for c in run.checks} == dict(zip(few, ["ok", "skipped"], strict=True))
    cores = sorted(affinity)
    shares = {str(set(cores[n::2]) or affinity) for n in range(2)}
    assert {c.said for c in run.checks} == shares, "each has the cores of its half"
    assert os.sched_getaffinity(0) == affinity


def test_checks_of_another_gpu_or_other_code_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "smoke.json"
    file.write_text(
        SmokeRun(gpu="H200", checks=[Checked(name="a", outcome="ok")]).model_dump_json()
    )
    assert SmokeRun(gpu="H200").resumed(file).checks[0].name == "a"
    with pytest.raises(ForeignFile, match="are of H200 by ansorpy , not of H100"):
        SmokeRun(gpu="H100").resumed(file)
    with pytest.raises(ForeignFile, match=r"not of H200 by ansorpy 1\+a"):
        SmokeRun(gpu="H200", code="1+a").resumed(file)
    file.write_text("{}")
    with pytest.raises(ForeignFile, match="has no result"):
        SmokeRun(gpu="H100").resumed(file)
