"""Trees as text: what is read predicts the same, and nothing else reaches LightGBM's parser."""

from __future__ import annotations

import re

import lightgbm
import numpy as np
import pytest

from ansorpy.cost.trees import plain_trees
from ansorpy.errors import ForeignFile

FEATURES = 5


@pytest.fixture(scope="module")
def grown() -> lightgbm.Booster:
    """Four trees, and one that is a leaf."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, FEATURES))
    rows[::7, 2] = 0.0
    data = lightgbm.Dataset(rows, label=rows[:, 0] * rows[:, 2] + rows[:, 3])
    options = {"verbosity": -1, "num_leaves": 9, "num_threads": 1, "seed": 1}
    return lightgbm.train(options | {"machine_list_filename": "/etc/passwd"}, data, 4)


def test_plain_trees_predict_the_same_and_have_no_parameters(grown: lightgbm.Booster) -> None:
    text = grown.model_to_string()
    plain = plain_trees(text, FEATURES)
    assert "machine_list_filename" in text and "parameters" not in plain
    assert len(plain) < len(text) / 2 and plain_trees(plain, FEATURES) == plain
    rows = np.random.default_rng(1).normal(size=(200, FEATURES))
    again = lightgbm.Booster(model_str=plain)
    assert again.num_trees() == 4
    np.testing.assert_array_equal(again.predict(rows), grown.predict(rows, raw_score=True))


def test_a_tree_may_be_one_leaf() -> None:
    rows = np.zeros((20, FEATURES))
    data = lightgbm.Dataset(rows, label=np.arange(20.0))
    leaf = lightgbm.train({"verbosity": -1}, data, 1)
    again = lightgbm.Booster(model_str=plain_trees(leaf.model_to_string(), FEATURES))
    np.testing.assert_array_equal(again.predict(rows), leaf.predict(rows))


@pytest.mark.parametrize(
    ("pattern", "instead", "message"),
    [
        (r"left_child=\S+", "left_child=7000", "no tree"),
        (r"left_child=\S+", "left_child=0", "no tree"),
        (r"left_child=\S+", "left_child=-90", "no tree"),
        (r"left_child=\S+", "left_child=1.5", "invalid literal"),
        (r"split_feature=\d+", "split_feature=5", "a feature that there is not"),
        (r"split_feature=\d+", "split_feature=-1", "a feature that there is not"),
        (r"split_feature=\d+", "split_feature=0 0", "numbers instead of"),
        (r"decision_type=\d+", "decision_type=1", "does not compare a number"),
        (r"threshold=\S+", "threshold=nan", "not finite"),
        (r"leaf_value=\S+", "leaf_value=inf", "not finite"),
        ("num_leaves=", "num_leaves=-", "no leaves"),
        ("num_leaves=", "num_leaves=9", "numbers instead of"),
        ("num_cat=0", "num_cat=1", "other kinds"),
        ("is_linear=0", "is_linear=1", "other kinds"),
        ("num_leaves=", "leaves=", "num_leaves"),
        ("max_feature_idx=4", "max_feature_idx=5", "not on 5 features"),
        ("end of trees", "", "not complete"),
    ],
)
def test_other_trees_are_refused(
    pattern: str, instead: str, message: str, grown: lightgbm.Booster
) -> None:
    changed, count = re.subn(pattern, instead, grown.model_to_string(), count=1)
    assert count
    with pytest.raises(ForeignFile, match=f"cannot be read: .*{message}"):
        plain_trees(changed, FEATURES)
