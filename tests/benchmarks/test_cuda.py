"""The GPU benchmark goes on where it was; its networks are the same in torch and as ONNX."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import CodegenError, ForeignFile
from ansorpy.frontend.onnx import load
from benchmarks.cuda.__main__ import Outcome, Run, _earlier, _read, main, work_through
from benchmarks.cuda.nets import as_onnx, bert, resnet
from benchmarks.cuda.steps import Settings, Step, steps
from benchmarks.cuda.timing import by_clock, fastest, in_turns

HERE = {"gpu": "NVIDIA H200"}


def counted(name: str, done: list[str], *, fails: int = 0) -> Step:
    """A step that fails *fails* times before it is measured."""

    def measure(torch: Any, settings: Settings, limit_s: float) -> tuple[float, float]:
        done.append(name)
        if done.count(name) <= fails:
            raise CodegenError("no program is correct")
        return 0.002, 0.003

    return Step(name, 1.0, 60.0, measure)


def work(chosen: list[Step], file: Path, *, seconds: float = 1000.0, again: bool = False) -> Run:
    """What a fresh process does with *file*."""
    run = Run(machine=HERE, trials=4)
    if file.exists():
        run.outcomes = _earlier(_read(file), run)
    end = monotonic() + seconds
    work_through(chosen, None, Settings(Path("none"), 4), run, file, end, again=again)
    return _read(file) if file.exists() else run


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "cuda.json"
    done: list[str] = []
    chosen = [counted("a", done), counted("b", done, fails=1), counted("c", done)]
    assert work(chosen[:1], file).outcomes[0].ratio == pytest.approx(1.5)
    run = work(chosen, file)
    assert done == ["a", "b", "c"]
    assert [bool(o.failure) for o in run.outcomes] == [False, True, False]
    run = work(chosen, file)  # what failed is tried again
    assert done == ["a", "b", "c", "b"]
    assert {o.name: o.failure for o in run.outcomes} == dict.fromkeys("abc", "")
    work(chosen[:1], file, again=True)
    assert done[-1] == "a" and len(_read(file).outcomes) == 3


def test_no_step_begins_when_the_minutes_are_up(tmp_path: Path) -> None:
    done: list[str] = []
    work([counted("a", done)], tmp_path / "cuda.json", seconds=1.0)
    assert not done and not (tmp_path / "cuda.json").exists()


def test_results_of_another_gpu_are_not_mixed_in(tmp_path: Path) -> None:
    file = tmp_path / "cuda.json"
    work([counted("a", [])], file)
    with pytest.raises(ForeignFile, match="are of NVIDIA H200, not of NVIDIA T4"):
        _earlier(_read(file), Run(machine={"gpu": "NVIDIA T4"}, trials=4))
    file.write_text("{}")
    with pytest.raises(ForeignFile, match="holds no results"):
        _read(file)


def test_a_file_is_shown_and_steps_are_listed(tmp_path: Path, capsys) -> None:
    file = tmp_path / "cuda.json"
    work([counted("ops.a", []), counted("ops.b", [], fails=9)], file)
    assert main(["--show", str(file)]) == 1  # one failed
    shown = capsys.readouterr().out
    assert "1.50 in geometric mean of 1 cases" in shown and "no program is correct" in shown
    assert main(["--list", "--only", "matmul*", "network*"]) == 0
    assert capsys.readouterr().out.split() == [
        "matmul.float32.4096", "matmul.float16.4096", "network.resnet50", "network.bert_base",
    ]  # fmt: skip


def test_the_steps_fit_their_minutes() -> None:
    assert sum(step.limit_s for step in steps()) <= 25 * 60
    assert len({step.name for step in steps()}) == len(steps())


def test_a_machine_without_a_gpu_is_refused_plainly(capsys) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    assert main([]) == 5
    assert "cupy" in (said := capsys.readouterr().err) or "no CUDA device" in said


def test_engines_are_timed_in_turns() -> None:
    calls: list[str] = []

    def engine(name: str, seconds: float) -> Any:
        def run(number: int) -> float:
            calls.append(name)
            return number * seconds

        return run

    assert in_turns(engine("a", 2e-3), engine("b", 1e-3)) == pytest.approx((2e-3, 1e-3))
    assert calls[-4:] == ["a", "a", "b", "b"]
    waited: list[int] = []
    assert by_clock(lambda: None, lambda: waited.append(1))(7) >= 0 and len(waited) == 7


def test_the_fastest_engine_takes_least_a_call() -> None:
    def engine(seconds: float) -> Any:
        return lambda number: number * seconds

    # Bursts of 2000 calls and of 1 last 2 us and 30 ms: only their calls can be compared.
    engines = [engine(seconds) for seconds in (3e-6, 0.03, 1e-9, 4e-6, 7e-3)]
    assert fastest(engines) is engines[2]
    assert fastest(engines[3:]) is engines[3]
    slower, quicker = engine(0.011), engine(0.0105)  # bursts of 22 and of 21 ms
    assert fastest([quicker, slower]) is quicker
    assert fastest([engine(0.0139), least := engine(0.0135)]) is least


@pytest.mark.parametrize("name", ["resnet", "bert"])
def test_networks_are_the_same_as_onnx(name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    if name == "resnet":
        module, x = resnet(torch, layers=(1, 2), width=4).eval(), torch.randn(1, 3, 32, 32)
    else:
        module = bert(torch, layers=2, width=16, heads=2, words=50).eval()
        x = torch.randint(0, 50, (1, 7))
    with torch.no_grad():
        want = module(x).numpy()
    with pytest.warns(DeprecationWarning):
        proto = as_onnx(torch, module, x)
    load(proto)  # every operator is one that is imported
    results: Any = ReferenceEvaluator(proto).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(results[0], want, rtol=2e-4, atol=2e-4)


def test_outcomes_have_a_ratio_only_with_both_times() -> None:
    assert Outcome(name="a", wanted=1.0, ours_ms=1.0).ratio is None
