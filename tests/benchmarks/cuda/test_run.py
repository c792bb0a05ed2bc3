"""The GPU benchmark goes on where it was; its networks are the same in torch and as ONNX."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from ansorpy.deadline import OutOfTime
from ansorpy.errors import CodegenError, ForeignFile, UsageError
from ansorpy.frontend.onnx import load
from benchmarks.cuda.figures import stage
from benchmarks.cuda.figures.base import Figures, FigureSettings, Step
from benchmarks.cuda.figures.stage import FiguresRun, StepResult, measure_all
from benchmarks.cuda.needed import DISTRIBUTIONS, missing, sentence
from benchmarks.cuda.nets import as_onnx, bert, resnet
from benchmarks.cuda.run import going_on, main, parser, stages_of
from benchmarks.cuda.steps import steps
from benchmarks.cuda.summary import summary
from benchmarks.cuda.timing import as_graph, by_clock, fastest, in_turns


def new_run(gpu: str = "NVIDIA H200") -> FiguresRun:
    return FiguresRun(gpu=gpu, software={}, trials=4)


class FakeCuda:
    """What is asked of ``torch.cuda`` beside the steps themselves."""

    is_lost = False
    current = "default"

    def synchronize(self) -> None:
        if self.is_lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def current_stream(self) -> str:
        return self.current

    def set_stream(self, stream: str) -> None:
        self.current = stream


def fake_torch() -> Any:
    return SimpleNamespace(cuda=FakeCuda())


def counted(name: str, done: list[str], *, fails: int = 0, error: Exception | None = None) -> Step:
    """A step that fails *fails* times before it is measured."""

    def measure(torch: Any, settings: FigureSettings, limit_s: float) -> Figures:
        done.append(name)
        if done.count(name) <= fails:
            raise error or CodegenError("no program is correct")
        return Figures(0.002, 0.003)

    return Step(name, 1.0, 60.0, measure)


def work(
    chosen: list[Step], file: Path, *, seconds: float = 1000.0, again: bool = False
) -> FiguresRun:
    """What a fresh process does with *file*."""
    run = new_run().resumed(file)
    end = monotonic() + seconds
    measure_all(chosen, fake_torch(), FigureSettings(Path("none"), 4), run, file, end, again=again)
    return run.resumed(file)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "cuda.json"
    done: list[str] = []
    chosen = [counted("a", done), counted("b", done, fails=1), counted("c", done)]
    assert work(chosen[:1], file).results[0].ratio == pytest.approx(1.5)
    run = work(chosen, file)
    assert done == ["a", "b", "c"]
    assert [bool(r.failure) for r in run.results] == [False, True, False]
    run = work(chosen, file)  # what failed is tried again
    assert done == ["a", "b", "c", "b"]
    assert {r.name: r.failure for r in run.results} == dict.fromkeys("abc", "")
    work(chosen[:1], file, again=True)
    assert done[-1] == "a" and len(new_run().resumed(file).results) == 3


@pytest.mark.parametrize(
    "error", [TypeError("not a tensor"), ImportError("no islpy"), OutOfTime(), ValueError("a\nb")]
)
def test_whatever_a_step_meets_with_is_its_outcome(tmp_path: Path, error: Exception) -> None:
    done: list[str] = []
    chosen = [counted("a", done, fails=1, error=error), counted("b", done)]
    failed, good = work(chosen, tmp_path / "cuda.json").results
    assert failed.failure == f"{type(error).__name__}: {error}".splitlines()[0]
    assert "Traceback" in failed.trace and "in measure" in failed.trace
    assert good.ratio and done == ["a", "b"]


def test_a_lost_gpu_ends_the_process_and_another_measures_the_rest(tmp_path: Path) -> None:
    torch, done = fake_torch(), list[str]()

    def losing(torch: Any, settings: FigureSettings, limit_s: float) -> Figures:
        torch.cuda.is_lost = True
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    chosen = [counted("a", done), Step("b", 1.0, 60.0, losing), counted("c", done)]
    run, file = new_run(), tmp_path / "cuda.json"
    settings, end = FigureSettings(Path("none"), 4), monotonic() + 1000
    tried = measure_all(chosen, torch, settings, run, file, end)
    assert tried == ["a", "b"] and done == ["a"]
    assert [bool(r.failure) for r in new_run().resumed(file).results] == [False, True]
    given = ["--again", "--stage", "smoke", "figures=1500", "--without", "z"]
    command = going_on(given, ["z", *tried], 12.5)
    assert command[1:3] == ["-m", "benchmarks.cuda"]
    options = parser().parse_args(command[3:])
    assert stages_of(options.stage) == {"figures": 12.5}
    assert (options.without, options.again) == (["z", "a", "b"], True)


@pytest.mark.parametrize(("tune_s", "minutes"), [(90.0, 300), (12.0, 5)])
def test_steps_share_the_time(
    tune_s: float, minutes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    searched: list[float] = []

    def begun(step: Step) -> Step:
        def measure(torch: Any, settings: FigureSettings, limit_s: float) -> Figures:
            nonlocal now
            now += limit_s + step.beside_s
            searched.append(limit_s - step.reference_s)
            assert limit_s <= step.limit_s
            return Figures(0.002, 0.003)

        assert step.beside_s >= 4 and step.limit_s > step.reference_s
        return replace(step, measure=measure)

    monkeypatch.setattr(stage, "monotonic", lambda: now)
    chosen, run = [begun(step) for step in steps(tune_s=tune_s)], new_run()
    settings = FigureSettings(Path("none"), 4)
    tried = measure_all(chosen, fake_torch(), settings, run, tmp_path / "a.json", 60 * minutes)
    assert now <= 60 * minutes and min(searched) >= 4
    assert tried[:3] == ["matmul.float32.4096", "matmul.float16.4096", "matmul.bfloat16.4096"]
    assert (tried == [step.name for step in chosen]) == (minutes > 5)


def test_the_last_step_gets_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, settings = 0.0, FigureSettings(Path("none"), 4)
    done: list[str] = []
    monkeypatch.setattr(stage, "monotonic", lambda: now)
    step = replace(counted("a", done), limit_s=90.0)
    for number in range(50):
        now = 1e5 + number / 7  # the rest of a moment rounds either way
        measure_all([step], fake_torch(), settings, new_run(),
                     tmp_path / "a.json", now + 60 - number / 9)  # fmt: skip
    assert len(done) == 50


def test_no_step_begins_when_the_minutes_are_up(tmp_path: Path) -> None:
    done: list[str] = []
    run = work([counted("a", done)], tmp_path / "cuda.json", seconds=1.0)
    assert not done and run.waiting == ["a"] and not summary(tmp_path / "cuda.json")[1]
    assert not work([counted("a", done)], tmp_path / "cuda.json").waiting
    assert summary(tmp_path / "cuda.json")[1]


def test_results_of_another_gpu_are_not_mixed_in(tmp_path: Path) -> None:
    file = tmp_path / "cuda.json"
    work([counted("a", [])], file)
    with pytest.raises(ForeignFile, match="are of NVIDIA H200 by .*, not of NVIDIA T4 by"):
        new_run("NVIDIA T4").resumed(file)
    with pytest.raises(ForeignFile, match="not of .* torch 3, 4 trials"):
        FiguresRun(gpu="NVIDIA H200", software={"torch": "3"}, trials=4).resumed(file)
    file.write_text("{}")
    with pytest.raises(ForeignFile, match="has no result"):
        new_run().resumed(file)


def test_a_file_is_shown_and_steps_are_listed(tmp_path: Path, capsys) -> None:
    file = tmp_path / "cuda.json"
    work([counted("ops.float32.C2D.a", []), counted("ops.float32.C2D.b", [], fails=9)], file)
    assert main(["--show", str(file)]) == 1  # one failed
    shown = capsys.readouterr().out
    assert "1.50, geometric mean of 1 cases of 1.00, 1 failed" in shown
    assert "no program is correct" in shown and "C2D 1.50" in shown
    assert main(["--list", "--only", "matmul*4096", "network*"]) == 0
    assert capsys.readouterr().out.split() == [
        "matmul.float32.4096", "matmul.float16.4096", "matmul.bfloat16.4096", "matmul.int8.4096",
        "network.resnet50", "network.resnet50.compiled", "network.bert_base",
        "network.bert_base.compiled", "network.resnet50.b32.float16.compiled",
    ]  # fmt: skip


@pytest.mark.parametrize("given", ["sooth", "smoke=soon", "=3"])
def test_stages_that_are_none_are_refused(given: str) -> None:
    with pytest.raises(UsageError, match="no stage"):
        stages_of(["smoke", given])


def test_stages_run_in_their_order_with_their_seconds() -> None:
    assert stages_of(["rank=7", "smoke"]) == {"smoke": 120.0, "rank": 7.0}
    assert list(stages_of(["rank=7", "smoke"])) == ["smoke", "rank"]


def test_steps_have_names_of_their_own() -> None:
    assert len({step.name for step in steps()}) == len(steps())


def test_missing_packages_are_named_together() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    wanted = [re.split("[<>=]", text)[0] for text in project["project"]["dependencies"]]
    assert set(wanted) == set(DISTRIBUTIONS)
    lacking = [name for name in missing(("numpy", "no-such-package", "nor-this")) if "-" in name]
    assert lacking == ["no-such-package", "nor-this"]
    assert sentence(lacking).startswith("not installed: no-such-package, nor-this; try: pip")


def test_a_graph_that_cannot_be_captured_leaves_the_stream_as_it_was() -> None:
    torch = fake_torch()

    @contextmanager
    def capturing(graph: object) -> Iterator[None]:
        torch.cuda.set_stream("capture")
        yield
        raise RuntimeError("operation not permitted when stream is capturing")

    torch.cuda.Stream = lambda: "side"
    torch.cuda.stream = lambda stream: nullcontext()
    torch.cuda.CUDAGraph = object
    torch.cuda.graph = capturing
    with pytest.raises(RuntimeError, match="not permitted"):
        as_graph(torch, lambda: None)
    assert torch.cuda.current_stream() == "default"


def test_a_machine_without_a_gpu_is_refused_plainly(capsys) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    assert main([]) == 5
    said = capsys.readouterr().err
    assert any(lack in said for lack in ("not installed: torch", "cupy", "no CUDA device"))


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
    for order in permutations([engine(0.0135), quick := engine(0.0105), engine(0.03)]):
        assert (
            fastest(order) is quick
        )  # though its burst of two calls lasts longer than one of 13 ms
    engines = [engine(seconds) for seconds in (3e-6, 0.03, 1e-6, 7e-3)]
    assert fastest(engines) is engines[2]


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
    assert StepResult(name="a", wanted=1.0, ours_ms=1.0).ratio is None
