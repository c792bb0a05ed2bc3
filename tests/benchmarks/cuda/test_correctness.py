"""The checks and random schedules of the correctness stage, on a simulated GPU."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import DeviceLost, ForeignFile
from ansorpy.measure.result import TrialKind
from ansorpy.target import Target
from benchmarks.cuda.correctness import checks
from benchmarks.cuda.correctness.schedules import Schedules, check_schedules
from benchmarks.cuda.smoke.checks import small_network
from benchmarks.cuda.smoke.machine import Fault, Skipped, SmokeGpu
from benchmarks.cuda.smoke.stage import check_one
from tests.benchmarks.cuda.quick import QUICK
from tests.benchmarks.cuda.simulated_smoke import simulated
from tests.campaigns.campaign import run_case
from tests.campaigns.device import PROGRAMS, device_campaign

NUMBERS = 0, 5, 2, 3, 4, 31
"""Cases of all kinds.  That of attention has one query and key: others take seconds to lower."""


def wrong() -> SmokeGpu:
    """A GPU whose programs with shared memory go wrong."""
    gpu = simulated()
    return SmokeGpu(gpu.device, gpu.target, lambda state: gpu.planted("wrong"), gpu.planted)


def lost() -> SmokeGpu:
    """A GPU whose context is lost by every program."""
    gpu = simulated()

    def build(state: object) -> object:
        raise DeviceLost("the GPU's context is lost: an illegal memory access")

    return SmokeGpu(gpu.device, gpu.target, build, gpu.planted)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fault", "kind"), checks.PLANTED.items())
def test_a_planted_fault_is_survived(fault: Fault, kind: TrialKind) -> None:
    found = check_one("a", simulated, {"a": checks.planted(fault, kind, 0.5)})
    assert found.outcome == "ok" and found.said.startswith(f"{kind.value}: "), found.line


def test_what_is_not_recorded_as_planted_has_failed() -> None:
    check = checks.planted("wrong", TrialKind.CRASH)
    found = check_one("a", simulated, {"a": check})
    assert found.outcome == "failed" and "wrong is recorded as wrong_result" in found.said


@pytest.mark.parametrize("fails", [False, True])
def test_the_sanitizer_watches_stored_programs(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(
        "#!/bin/sh\nshift 4\n\"$@\" || exit 1\n"
        + ("echo '========= Invalid __global__ write of size 4'\nexit 9\n" if fails
           else "echo '========= ERROR SUMMARY: 0 errors'\n")
    )  # fmt: skip
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    check = checks.watched("memcheck", 3)
    if fails:
        with pytest.raises(AssertionError, match="Invalid __global__ write of size 4"):
            check(simulated())
    else:
        assert check(simulated()) == "3 programs; ERROR SUMMARY: 0 errors"


def test_nothing_is_watched_without_the_sanitizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Skipped, match="compute-sanitizer is not on the PATH"):
        checks.CHECKS["watched.memcheck"](simulated())


def test_networks_need_a_real_gpu() -> None:
    with pytest.raises(Skipped, match="only a real GPU"):
        checks.CHECKS["network.squeezenet"](simulated())


def test_networks_agree_with_onnxruntime() -> None:
    said = checks.agree(small_network(), Target.host())
    assert re.fullmatch(r"differs by \d\.\de-0[7-9] of the largest value", said)


def test_the_cases_are_of_every_kind() -> None:
    assert {PROGRAMS[number % len(PROGRAMS)] for number in NUMBERS} == set(PROGRAMS)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_kind_of_schedule_runs(number: int) -> None:
    kinds = run_case(device_campaign(simulated), 0, number).kinds
    assert kinds["programs"] > 0


def test_schedules_resume_until_there_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "cuda.schedules.json"
    run = check_schedules(Schedules(gpu="GPU"), file, 10, 1, 60.0, QUICK)
    assert run.programs >= 10 and not run.failures
    assert Schedules(gpu="GPU", seed=0).resumed(file) == run
    again = check_schedules(Schedules(gpu="GPU", seed=0).resumed(file), file, 10, 1, 60.0, QUICK)
    assert again.cases == run.cases
    more = check_schedules(again, file, run.programs + 1, 1, 60.0, QUICK)
    assert more.programs > run.programs and len(set(more.cases)) == len(more.cases)
    with pytest.raises(
        ForeignFile, match="are of GPU by .* and seed 0, not of T4 by .* and seed 0"
    ):
        Schedules(gpu="T4", seed=0).resumed(file)
    file.write_text("{}")
    with pytest.raises(ForeignFile, match="has no result"):
        Schedules(gpu="GPU", seed=0).resumed(file)


def test_a_wrong_program_fails_with_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cuda.schedules.json"
    run = check_schedules(Schedules(gpu="GPU", seed=3), file, 1, 1, 0.0, device_campaign(wrong))
    assert run.failures and not run.programs
    failure = Schedules(gpu="GPU", seed=3).resumed(file).failures[0]
    assert failure.command == f"python -m tests.campaigns device --seed 3 --only {failure.number}"
    assert f"case {failure.number}" in capsys.readouterr().err
    # What failed is run again.
    mended = check_schedules(run, file, 1, 1, 60.0, device_campaign(simulated))
    assert failure.number in mended.cases and not mended.failures


def test_a_lost_context_ends_its_process_only(tmp_path: Path) -> None:
    file, campaign = tmp_path / "a.json", device_campaign(lost)
    run = check_schedules(Schedules(gpu="GPU"), file, 1, 1, 0.0, campaign)
    assert run.failures
    assert all("the GPU's context is lost" in failure.seen for failure in run.failures)


def test_cases_depend_on_seed_and_number_only() -> None:
    first, again = (
        [str(p.state.history) for p in PROGRAMS[0](np.random.default_rng([5, 0]), simulated())]
        for _ in range(2)
    )
    assert first == again
