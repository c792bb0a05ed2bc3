"""A model as a file: it scores as before, goes on learning, and other files are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import PRIOR_VERSION, AnalyticModel
from ansorpy.cost.boosted import BoostedTrees, WeightedTrees
from ansorpy.cost.features import FEATURE_VERSION
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.protocol import Correcting
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.target import Target
from tests.cost.populations import SHAPE, population, trained, true_seconds
from tests.cost.tasks import matmul_task

TASK = matmul_task(*SHAPE)
FAMILY = TASK.target.family


@cache
def kept() -> SavedModel:
    """A saved model: each call of it gives a new one, which learns apart."""
    return SavedModel.of(trained(), FAMILY)


def test_what_was_saved_scores_the_same_without_the_records(tmp_path: Path) -> None:
    model, (programs, _) = trained(), population(50, 7)
    saved = SavedModel.of(model, FAMILY)
    (tmp_path / "m.txt").write_text(saved.text())
    read = SavedModel.read(tmp_path / "m.txt")
    assert read == saved and read.digest == saved.digest
    assert (read.family, read.programs, read.tasks, read.is_trained) == (FAMILY, 128, 1, True)
    np.testing.assert_allclose(read().predict(TASK, programs), model.predict(TASK, programs))


def test_it_ranks_from_the_first_and_goes_on_learning() -> None:
    model = kept()()
    programs, columns = population(300, 5)
    seconds = true_seconds(columns)
    before = rank_correlation(model.predict(TASK, programs), -seconds)
    assert before > rank_correlation(BoostedTrees().predict(TASK, programs), -seconds) + 0.1
    other = 1e-3 * (1.0 + columns["j1"].values.astype(np.float64))  # a task with a taste of its own
    earlier = rank_correlation(model.predict(TASK, programs), -other)
    model.learn(TASK, programs, other)
    model.refit()
    assert rank_correlation(model.predict(TASK, programs), -other) > earlier + 0.1


def test_where_nothing_is_measured_the_trees_of_many_programs_count_more() -> None:
    few, (programs, _) = kept(), population(50, 2)
    many = replace(few, programs=30_000)
    prior = AnalyticModel().predict(TASK, programs)

    def correction(model: BoostedTrees) -> Floats:
        found: Floats = np.log(model.predict(TASK, programs) / prior)
        return found

    expected = correction(few())
    np.testing.assert_allclose(correction(few().alone()), expected)
    np.testing.assert_allclose(correction(many()), expected)
    np.testing.assert_allclose(correction(many().alone()), 0.8 / 0.25 * expected, rtol=1e-6)
    grown = many()
    grown.learn(TASK, programs, np.random.default_rng(4).uniform(1.0, 2.0, len(programs)))
    grown.refit()
    assert not np.allclose(correction(grown), expected)
    np.testing.assert_allclose(correction(grown.alone()), 0.8 / 0.25 * expected, rtol=1e-6)
    assert isinstance(grown, Correcting) and isinstance(grown.corrected, AnalyticModel)
    assert BoostedTrees().corrected is None


def test_below_enough_programs_it_stands_as_it_was() -> None:
    saved = kept()
    model, (programs, columns) = saved(), population(4, 3)
    model.learn(TASK, programs, true_seconds(columns)[::-1].copy())
    model.refit()
    np.testing.assert_array_equal(model.predict(TASK, programs), saved().predict(TASK, programs))


def test_what_was_learnt_on_top_is_saved_too() -> None:
    model, (programs, columns) = kept()(), population(40, 9)
    model.learn(TASK, programs, true_seconds(columns)[::-1].copy())
    model.refit()
    again = SavedModel.parse(SavedModel.of(model, FAMILY).text(), "m")
    programs, _ = population(50, 2)
    np.testing.assert_allclose(again().predict(TASK, programs), model.predict(TASK, programs))


def test_two_calls_give_models_that_learn_apart() -> None:
    saved = kept()
    one, other = saved(), saved()
    programs, columns = population(32, 4)
    one.learn(TASK, programs, true_seconds(columns))
    assert len(one.data) == 32 and not len(other.data)


def test_an_untrained_model_is_the_closed_form() -> None:
    saved = SavedModel.parse(SavedModel.of(BoostedTrees(), FAMILY).text(), "m")
    programs, _ = population(20, 1)
    assert not saved.is_trained
    np.testing.assert_array_equal(
        saved().predict(TASK, programs), BoostedTrees().predict(TASK, programs)
    )


@pytest.mark.parametrize(
    "text", ["", "hello", '{"format": "other"}\n', "[1]\n", "[" * 100_000, "tree\nversion=v4"]
)
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises(ForeignFile, match=r"^m\.txt is not a cost model"):
        SavedModel.parse(text, "m.txt")


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ForeignFile, match="is not a cost model"):
        SavedModel.read(tmp_path / "m")
    with pytest.raises(ForeignFile, match="cannot read .*none"):
        SavedModel.read(tmp_path / "none")


def test_other_features_are_told_from_other_files() -> None:
    head, _, trees = kept().text().partition("\n")
    for version in ("0123", FEATURE_VERSION, f"{FEATURE_VERSION}-{PRIOR_VERSION + 1}"):
        other = json.dumps({**json.loads(head), "features": version})
        with pytest.raises(ForeignFile, match="features or an analytic model that differ"):
            SavedModel.parse(f"{other}\n{trees}", "m.txt")


@pytest.mark.parametrize(
    "field", [{"trees": [["x", 5]]}, {"trees": [5]}, {"programs": -1}, {"surprise": 1}]
)
def test_a_damaged_head_is_refused(field: dict[str, object]) -> None:
    head, _, trees = kept().text().partition("\n")
    with pytest.raises(ForeignFile, match=r"^m\.txt is damaged"):
        SavedModel.parse(f"{json.dumps({**json.loads(head), **field})}\n{trees}", "m.txt")


@pytest.mark.parametrize("field", [{"trees": [[1.0, 5]]}, {"digest": "0" * 64}])
def test_a_head_that_is_not_of_its_trees_is_refused(field: dict[str, object]) -> None:
    head, _, trees = kept().text().partition("\n")
    with pytest.raises(ForeignFile, match=r"^m\.txt is damaged: its trees"):
        SavedModel.parse(f"{json.dumps({**json.loads(head), **field})}\n{trees}", "m.txt")


def test_anyone_may_have_written_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = kept()
    monkeypatch.setenv("ANSORPY_STATE", str(tmp_path / "stranger"))
    theirs = saved.text()
    monkeypatch.undo()
    assert SavedModel.parse(theirs, "m.txt") == saved


def test_trees_that_lightgbm_must_not_see_are_refused_with_the_file() -> None:
    """Its parser trusts the indices of a tree's children; here the digest says that all is well."""
    trees = kept()().trees()
    changed = re.sub(r"left_child=\S+", "left_child=900000", trees[0].text, count=1)
    text = SavedModel(FAMILY, 1, 1, (WeightedTrees(1.0, changed),)).text()
    with pytest.raises(ForeignFile, match=r"^m\.txt is damaged: .* its nodes are no tree"):
        SavedModel.parse(text, "m.txt")


@pytest.mark.parametrize(("weight", "scale"), [(1.0, 1e5), (1e6, 1.0), (1e308, 1e300)])
def test_trees_of_any_size_leave_scores_positive_and_finite(weight: float, scale: float) -> None:
    def larger(leaves: re.Match[str]) -> str:
        return "leaf_value=" + " ".join(str(float(leaf) * scale) for leaf in leaves[1].split())

    [trees] = kept()().trees()
    huge = re.sub("leaf_value=(.*)", larger, trees.text)
    parts = WeightedTrees(weight, huge), WeightedTrees(-weight / 2, huge)
    model = SavedModel.parse(SavedModel(FAMILY, 1, 1, parts).text(), "m.txt")()
    programs, columns = population(40, 9)
    for _ in range(2):
        scores = model.predict(TASK, programs)
        assert np.isfinite(scores).all() and (scores > 0).all()
        model.learn(TASK, programs, true_seconds(columns))
        model.refit()


@pytest.mark.parametrize("cut", [1, 1000])
def test_damaged_trees_are_refused(cut: int) -> None:
    text = kept().text()
    with pytest.raises(ForeignFile, match="damaged: its trees"):
        SavedModel.parse(text[:-cut], "m.txt")


def test_it_serves_machines_of_its_kind_only() -> None:
    saved = SavedModel.of(trained(), Target.parse("x86-64-v4").family)
    saved.demand(Target.parse("x86-64-v4"))
    for other in ("x86-64-v3", "cortex-a76", "sm_90"):
        with pytest.raises(UsageError, match="trained on programs for x86_64 with 512-bit"):
            saved.demand(Target.parse(other))
