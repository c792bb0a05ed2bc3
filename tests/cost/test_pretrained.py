"""The models that ship: they are of this version, small, and rank for their families only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorpy.cost import pretrained
from ansorpy.cost.pretrained import pretrained_for, shipped_file, shipped_model
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import ForeignFile
from ansorpy.target import Target
from tests.cost.populations import SHAPE, population, trained
from tests.cost.tasks import matmul_task

TASK = matmul_task(*SHAPE)
MOST_BYTES = 5_000_000


def test_what_ships_is_of_this_version_and_small() -> None:
    for path in shipped_file("").parent.glob("*.txt"):
        assert path.stat().st_size < MOST_BYTES
        model = SavedModel.shipped(path)
        assert model is not None and model.is_trained, f"train {path} again"
        assert path == shipped_file(model.family)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only file that ships, for machines like the task's."""
    path = tmp_path / TASK.target.family
    path.write_text(SavedModel.of(trained(), TASK.target.family).text())
    monkeypatch.setattr(pretrained, "shipped_file", lambda family: tmp_path / family)
    _forget()
    yield path
    _forget()


def _forget() -> None:
    pretrained_for.cache_clear()
    shipped_model.cache_clear()


def test_it_ranks_for_its_family_and_the_closed_form_for_others(shipped: Path) -> None:
    model, (programs, _) = shipped_model(TASK.target), population(30, 5)
    assert model is not None and model is shipped_model(TASK.target)
    np.testing.assert_allclose(
        model.predict(TASK, programs), trained().predict(TASK, programs), rtol=1e-6
    )
    other = Target.parse("cortex-a76")
    assert pretrained_for(other) is None
    assert shipped_model(other) is None
    narrow = replace(TASK.target, vector_bits=TASK.target.vector_bits // 2)
    assert pretrained_for(narrow) is None


def test_one_of_other_features_is_left_out_and_a_damaged_one_is_refused(shipped: Path) -> None:
    text = shipped.read_text()
    head, _, trees = text.partition("\n")
    shipped.write_text(head.replace('"features":"', '"features":"0') + "\n" + trees)
    assert pretrained_for(TASK.target) is None
    _forget()
    shipped.write_text(text[:-40])
    with pytest.raises(ForeignFile, match="is damaged"):
        pretrained_for(TASK.target)
