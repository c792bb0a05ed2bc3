"""All stages from the command line without a GPU, and what is printed of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansorpy.measure.gpu.runner import GpuRunner
from ansorpy.target import Target
from benchmarks.cuda import run
from benchmarks.cuda.correctness.schedules import Failed, Schedules, check_schedules
from benchmarks.cuda.figures.base import Figures, FigureSettings, Step
from benchmarks.cuda.figures.stage import FiguresRun, StepResult
from benchmarks.cuda.rank import Predicted, Ranked, RankRun, rank_all
from benchmarks.cuda.run import main
from benchmarks.cuda.smoke.stage import Checked, SmokeRun, check_all
from benchmarks.cuda.summary import file_of, summary
from benchmarks.ops.suite import cases
from tests.benchmarks.cuda.quick import QUICK
from tests.benchmarks.cuda.test_rank import SMALL, opened
from tests.codegen.cuda.simulated import GPU

TAIL = 12_000
"""Characters of what a machine far away sends back."""


class FakeTorch:
    """A torch whose GPU is never lost."""

    cuda = type("Cuda", (), {"synchronize": staticmethod(lambda: None)})


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages with few cases, quick or on a simulated GPU; the steps that were measured."""
    measured: list[str] = []

    def quick(name: str, torch: object, settings: FigureSettings, limit_s: float) -> Figures:
        measured.append(name)
        return Figures(0.001, 0.002, peer="matmul")

    def few(only: Sequence[str], tune_s: float) -> list[Step]:
        return [Step(name, 1.0, tune_s, partial(quick, name)) for name in ("matmul.a", "matmul.b")]

    def checked(run: SmokeRun, file: Path, names: Any = None, **rest: Any) -> SmokeRun:
        rest["module"] = "tests.benchmarks.cuda.quick"
        chosen = ["network.squeezenet"] if names else ["driver.memory"]
        return check_all(run, file, chosen, **rest)

    def open_small() -> GpuRunner:
        return opened(tmp_path)

    def ranked(run: RankRun, file: Path, target: Target, _: Any, *rest: Any, **more: Any) -> Any:
        return rank_all(run, file, target, open_small, *rest, tasks=SMALL, **more)

    parse = Target.parse
    monkeypatch.setattr(
        Target, "parse", staticmethod(lambda name: GPU if name == "cuda" else parse(name))
    )
    for name, made in {
        "missing": list, "cuda_torch": FakeTorch, "steps": few, "check_all": checked,
        "_software": lambda torch: {"torch": "2"}, "rank_all": ranked,
        "check_schedules": partial(check_schedules, campaign=QUICK),
    }.items():  # fmt: skip
        monkeypatch.setattr(run, name, made)
    return measured


def test_all_stages_run_and_resume(
    simulation: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--json", str(tmp_path / "out" / "cuda.json"), "--db", str(tmp_path / "out" / "a.db"),
             "--count", "5", "--candidates", "2", "--jobs", "2"]  # fmt: skip
    assert main(given) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    for said in ("smoke on : 1 ok", "correctness on : 0 ok, 1 skipped", "schedules in",
                 "rank matmul: Spearman", "matmul.b [float32, sums float32]"):  # fmt: skip
        assert said in shown
    assert {path.name for path in (tmp_path / "out").glob("*.json")} == {
        "cuda.json", "cuda.smoke.json", "cuda.correctness.json", "cuda.schedules.json",
        "cuda.rank.json",
    }  # fmt: skip
    assert main(given) == 0
    again = capsys.readouterr()
    assert again.out == shown and "driver.memory: ok" in again.err and " before" in again.err
    assert simulation == ["matmul.a", "matmul.b"]


def test_a_stage_that_ends_early_does_not_stop_the_others(
    simulation: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def broken(*given: object, **more: object) -> None:
        raise RuntimeError("the pool broke")

    monkeypatch.setattr(run, "check_all", broken)
    given = ["--json", str(tmp_path / "cuda.json"), "--db", str(tmp_path / "a.db")]
    assert main([*given, "--stage", "figures=60", "smoke=60"]) == 1
    assert "smoke has ended early:" in (said := capsys.readouterr().err)
    assert "the pool broke" in said and simulation == ["matmul.a", "matmul.b"]


def test_a_summary_fits_what_is_sent_back(tmp_path: Path) -> None:
    file = tmp_path / "cuda.json"
    long = "x" * 3000
    checks = [Checked(name=f"network.{n}", outcome="failed", said=long) for n in range(17)]
    for stage in ("smoke", "correctness"):
        file_of(file, stage).write_text(SmokeRun(gpu="H200", checks=checks).model_dump_json())
    failures = [Failed(number=n, command="run", seen=f"a\n{long}") for n in range(50)]
    kinds = {f"kind {n}": n for n in range(40)} | {"programs": 1000}
    schedules = Schedules(gpu="H200", kinds=kinds, failures=failures)
    file_of(file, "schedules").write_text(schedules.model_dump_json())
    program = Predicted(steps=long, predicted_s=1.0, measured_s=2.0, kind="ok")
    ranks = RankRun(gpu="H200", tasks=[Ranked(name=f"t{n}", programs=[program]) for n in range(6)])
    file_of(file, "rank").write_text(ranks.model_dump_json())
    names = [f"matmul.{n}" for n in range(20)]
    names += [f"ops.{dtype}.{c.name}" for dtype in ("float32", "float16") for c in cases()]
    figures = [
        StepResult(name=name, wanted=1.0, ours_ms=1.0 + n, peer_ms=2.0, note=long,
                failure=long if n % 3 == 0 else "")
        for n, name in enumerate(names)
    ]  # fmt: skip
    FiguresRun(gpu="H200", software={}, trials=1, results=figures).write(file)
    lines, is_sound = summary(file)
    assert not is_sound and len("\n".join(lines)) < TAIL
    assert any(line.startswith("the suite in float16: ") for line in lines)
