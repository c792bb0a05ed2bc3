"""Exchanging parts of a search: by name, by instance, and by a script of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ansorpy as ap
from ansorpy.api import parts as api_parts
from ansorpy.api.arguments import PartArguments
from ansorpy.api.parts import PARTS, Parts
from ansorpy.api.plugins import load_plugins
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import ForeignFile, MissingDependency, UsageError
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.options import declared
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.selector import Selector
from ansorpy.search.selectors.top_k import TopK
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategies.grid import Grid
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategy import Strategy
from ansorpy.search.transfer import TransferSource
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import Objective
from ansorpy.tasks.recorded_request import described, differences
from ansorpy.tasks.scheduler import TaskScheduler
from ansorpy.tasks.tune import TuneOptions, WeightedTask
from tests.search.runners import FormulaRunner
from tests.search.tasks import matmul
from tests.tasks.anew import tune_anew

PLUGIN = '''
from dataclasses import dataclass
import ansorpy as ap
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.search.population import Pool, sample_valid, score

SEEN = []

@ap.PARTS["strategy"].register("first_sketch")
@dataclass
class FirstSketch:
    """Rows of the first placed sketch."""

    def ask(self, context, n):
        sketch = next(context.source.every())
        table = sample_valid(sketch, 4 * n, context.rng)
        found = score(context.task, context.model, sketch, table).candidates()
        return Pool(tuple(c for c in found if c.key not in context.measured))

    def tell(self, found):
        SEEN.extend(candidate.sketch.key for candidate, _ in found)

@ap.PARTS["selector"].register("last")
class Last:
    """From the end."""

    def pick(self, pool, n, rng):
        return list(pool.best[::-1][:n])

@ap.PARTS["measure"].register("long")
def long():
    """Half a second each."""
    return TimingPolicy(total_s=0.5)
'''

UNSHIPPED = Target.parse("cortex-a76")
"""A target for which no model ships."""


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    yield path
    for kind, name in (("strategy", "first_sketch"), ("selector", "last"), ("measure", "long")):
        if name in PARTS[kind]:
            PARTS[kind].remove(name)


def test_a_plugins_parts_are_searched_with(plugin: Path) -> None:
    load_plugins([plugin])
    parts = Parts(strategy="first_sketch", selector="last", measure="long")
    assert parts.policy() == TimingPolicy(total_s=0.5)
    task, runner = matmul(16, 16, 16), FormulaRunner()
    source = SketchSampler(task)
    entries = [WeightedTask(task, source)]
    tuning = tune_anew(entries, Budget(trials=24), runner, options=parts.tuning(0, UNSHIPPED))
    assert tuning.outcomes[0].history.trials == 24
    seen = __import__("ansorpy_plugin_mine").SEEN
    assert set(seen) == {next(source.every()).key}


def test_plain_errors_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no plugin .*absent.py"):
        load_plugins([tmp_path / "absent.py"])
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\ny = x / 0\n")
    with pytest.raises(UsageError, match=r"broken.py failed: line 2: ZeroDivisionError: division"):
        load_plugins([broken])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"broken.py failed: line 2: ZeroDivisionError"):
        load_plugins(["broken.py"])
    broken.write_text("def f(:\n")
    with pytest.raises(UsageError, match=r"broken.py failed: SyntaxError"):
        load_plugins([broken])
    broken.write_text("import ansorpy as ap\nap.PARTS['strategy'].register('grid')(int)\n")
    with pytest.raises(UsageError, match='there is a strategy "grid" already'):
        load_plugins([broken])


def test_a_name_an_instance_and_a_class_will_do() -> None:
    mine = Evolution(population=64)
    given = [
        Parts(strategy=choice).tuning(3, UNSHIPPED).search
        for choice in ("grid", RandomSearch, mine)
    ]
    made = [options.strategy() for options in given]
    assert isinstance(made[0], Grid) and isinstance(made[1], RandomSearch)
    assert made[2] == mine and made[2] is not mine, "each task has a copy of its own"
    assert {options.seed for options in given} == {3}
    assert Parts(selector=TopK()).tuning(0, UNSHIPPED).search.selector == TopK()
    assert isinstance(Parts(cost_model="analytic").tuning(0, UNSHIPPED).model(), AnalyticModel)
    assert Parts(measure=TimingPolicy(total_s=1.0)).policy().total_s == 1.0


def test_a_trained_model_is_named_by_its_file_or_given(tmp_path: Path) -> None:
    saved = SavedModel.of(BoostedTrees(), Target.host().family)
    path = tmp_path / "m.txt"
    path.write_text(saved.text())
    for choice in (path, str(path), saved):
        assert Parts(cost_model=choice).tuning(0, UNSHIPPED).model == saved
    with pytest.raises(ForeignFile, match="cannot read"):
        Parts(cost_model=tmp_path / "absent")
    path.write_text("other")
    with pytest.raises(ForeignFile, match="is not a cost model"):
        Parts(cost_model=path)
    a = ap.placeholder((16,), name="A")
    b = ap.compute((16,), lambda i: a[i] * 2.0, name="B")
    with pytest.raises(UsageError, match="was trained on programs for cuda"):
        ap.tune([a, b], cost_model=SavedModel.of(BoostedTrees(), "cuda"))


def test_the_default_starts_from_the_model_that_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = SavedModel("a family", 12, 3, ())
    monkeypatch.setattr(api_parts, "pretrained_for", lambda target: shipped)
    assert Parts().model_for(UNSHIPPED) is shipped
    assert isinstance(Parts(cost_model="analytic").model_for(UNSHIPPED)(), AnalyticModel)
    monkeypatch.setattr(api_parts, "pretrained_for", lambda target: None)
    assert isinstance(Parts().model_for(UNSHIPPED)(), BoostedTrees)


def test_parts_arguments_and_options_are_the_same_with_the_same_defaults() -> None:
    assert {argument.name for argument in declared(PartArguments)} == {*PARTS}
    assert described(Parts().tuning(0, UNSHIPPED)) == described(TuneOptions())
    changed = described(Parts(strategy=Grid, objective="geomean").tuning(0, UNSHIPPED))
    assert differences(changed, described(TuneOptions())) == ["search.strategy", "objective"]


@pytest.mark.parametrize("kind", PARTS)
def test_an_unknown_name_says_what_there_is(kind: str) -> None:
    with pytest.raises(UsageError) as error:
        Parts(**{kind: "nonsense"})
    assert error.value.message == f'unknown {PARTS[kind].kind} "nonsense"'
    assert all(name in str(error.value.hint) for name in PARTS[kind])


@pytest.mark.parametrize("kind", PARTS)
def test_what_is_no_part_is_refused_before_the_search(kind: str) -> None:
    others: list[Any] = [None, 3, int, Path if kind == "measure" else TimingPolicy()]
    for given in others:
        with pytest.raises(UsageError, match=f"is no {PARTS[kind].kind}: it has no ") as error:
            Parts(**{kind: given})
        assert "derive your own from ansorpy." in str(error.value.hint)
    with pytest.raises(UsageError, match="<class 'int'> is no "):
        PARTS[kind].register("whole")(int)
    assert "whole" not in PARTS[kind]


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        ("strategy", Strategy),
        ("selector", Selector),
        ("cost_model", CostModel),
        ("scheduler", TaskScheduler),
        ("objective", Objective),
        ("transfer", TransferSource),
    ],
)
def test_what_only_derives_from_the_base_is_refused(kind: str, base: type) -> None:
    empty = type("Empty", (base,), {})
    with pytest.raises(UsageError, match=f"Empty'> is no {PARTS[kind].kind}: it has no "):
        Parts(**{kind: empty})


@pytest.mark.parametrize("kind", list(PARTS))
def test_every_part_can_be_made_and_is_described(kind: str) -> None:
    for name, text in PARTS[kind].descriptions().items():
        assert len(text) > 20, name
        with suppress(MissingDependency):  # says what to install
            PARTS[kind].one(name)


def test_tune_and_compile_take_them() -> None:
    a = ap.placeholder((16,), name="A")
    b = ap.compute((16,), lambda i: a[i] * 2.0, name="B")
    with pytest.raises(UsageError, match='unknown strategy "best"'):
        ap.tune([a, b], strategy="best")
    with pytest.raises(UsageError, match='unknown selector "best"'):
        ap.compile("absent.onnx", selector="best")
    with pytest.raises(UsageError, match='there is no option "trails"'):
        ap.tune([a, b], trails=3)  # type: ignore[call-arg]


def test_a_kernel_tuned_with_other_parts() -> None:
    a = ap.placeholder((24,), name="A")
    b = ap.compute((24,), lambda i: a[i] * 2.0, name="B")
    kernel = ap.tune(
        [a, b],
        trials=6,
        threads=1,
        strategy=Grid(),
        selector="submodular",
        cost_model="analytic",
        transfer="none",
        measure="variance_adaptive",
    )
    assert kernel.median_ms
