"""Networks as files: they score as before and go on learning; other files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.api.parts import Parts
from ansorpy.cost.learner import COLUMNS
from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.mtl_tlp import MultiTaskTLP
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.pruner import Pruner
from ansorpy.cost.neural.saved import read_network, write_network
from ansorpy.cost.neural.tenset import TenSet
from ansorpy.errors import ForeignFile, UsageError
from tests.cost.neural.spaces import drawn, learned, task_of
from tests.cost.neural.test_library import NETWORKS


@pytest.mark.parametrize("name", NETWORKS)
def test_a_read_network_scores_the_same_and_goes_on_learning(name: str, tmp_path: Path) -> None:
    model = MODELS.one(name)
    assert isinstance(model, NetworkModel)
    write_network(learned(model), tmp_path / "n.npz")
    again = read_network(tmp_path / "n.npz")
    assert type(again) is type(model) and again.targets == model.targets
    programs = drawn(task_of(), 10, 2)
    before = model.predict(task_of(), programs)
    np.testing.assert_array_equal(again.predict(task_of(), programs), before)
    assert (learned(again).predict(task_of(), programs) != before).any()


def test_a_search_takes_the_file(tmp_path: Path) -> None:
    write_network(learned(TenSet(hidden=8)), tmp_path / "n.npz")
    for choice in (tmp_path / "n.npz", str(tmp_path / "n.npz")):
        model = Parts(cost_model=choice).model()
        assert isinstance(model, TenSet) and model.is_trained and model.hidden == 8


def test_settings_are_kept(tmp_path: Path) -> None:
    model = learned(MultiTaskTLP(hidden=16, machines=2))
    write_network(model, tmp_path / "n.npz")
    again = read_network(tmp_path / "n.npz")
    assert isinstance(again, MultiTaskTLP) and (again.hidden, again.machines) == (16, 2)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    model = learned(Pruner(hidden=8, moves=8, blocks=0, verified=1, min_programs=0))
    model.min_programs, model.refit_share = 5000, 2.0
    write_network(model, tmp_path / "n.npz")
    again = read_network(tmp_path / "n.npz")
    assert isinstance(again, Pruner) and (again.blocks, again.verified) == (0, 1.0)
    model.verified = 2.0
    with pytest.raises(UsageError, match="cannot save pruner: its setting verified is out of"):
        write_network(model, tmp_path / "n.npz")


@pytest.mark.parametrize("name", NETWORKS)
def test_scores_of_huge_weights_are_positive_and_finite(name: str, tmp_path: Path) -> None:
    model = MODELS.one(name)
    assert isinstance(model, NetworkModel)
    write_network(learned(model), tmp_path / "n.npz")
    huge = {n: np.sign(w) * np.float32(1e38) for n, w in model.weights().items() if n != "spread"}
    scores = read_network(changed(tmp_path / "n.npz", {}, **huge)).predict(
        task_of(), drawn(task_of(), 40, 2)
    )
    assert np.isfinite(scores).all() and (scores > 0).all()


def test_only_a_trained_network_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only a trained network"):
        write_network(TenSet(), tmp_path / "n.npz")
    with pytest.raises(UsageError, match="cannot write"):
        write_network(learned(TenSet(hidden=8)), tmp_path / "none" / "n.npz")


def changed(path: Path, header: dict[str, Any], **arrays: Any) -> Path:
    """The file with another header or other weights."""
    with np.load(path) as archive:
        old = json.loads(archive["header"].tobytes())
        weights = {n: archive[n] for n in archive.files if n != "header"}
    line = np.frombuffer(json.dumps(old | header).encode(), dtype=np.uint8)
    np.savez(path, header=line, **(weights | arrays))
    return path


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"format": "other"}, {}, "is not a network"),
        ({"model": "boosted"}, {}, "unknown here, boosted"),
        ({"sees": "features-0"}, {}, "trained on other features"),
        ({"settings": {"hidden": 100000}}, {}, "is not a network"),
        ({"settings": {"hidden": 0.5}}, {}, "another version"),
        ({"settings": {"hidden": 16}}, {}, "weights are of another network"),
        ({"settings": {"hidden": 4096, "blocks": 256}}, {}, "weights are of another network"),
        ({"settings": {"refit_share": float("nan")}}, {}, "is not a network"),
        ({"model": "pruner", "settings": {"verified": 1e308}}, {}, "is not a network"),
        (
            {"model": "tlp", "sees": "tokens-1", "settings": {"attention_heads": 7}},
            {},
            "settings make no network",
        ),
        ({"model": "pruner", "settings": {"attention_heads": 0}}, {}, "settings make no network"),
        ({}, {"out.bias": np.zeros(1)}, "not finite numbers of float32"),
        ({}, {"out.bias": np.full(1, np.nan, np.float32)}, "not finite numbers of float32"),
        ({}, {"out.bias": np.zeros(2, np.float32)}, "out.bias differs"),
        ({}, {"out.bias": np.array([{}])}, "is not a network"),
        (
            {},
            {"spread": np.zeros(len(COLUMNS), np.float32)},
            "scale of a column is not positive",
        ),
    ],
)
def test_other_files_are_refused(
    header: dict[str, Any], arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_network(learned(TenSet(hidden=8)), tmp_path / "n.npz")
    with pytest.raises(ForeignFile, match=message):
        read_network(changed(tmp_path / "n.npz", header, **arrays))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.npz").write_text("ansorpy-network")
    with pytest.raises(ForeignFile, match="is not a network") as caught:
        read_network(tmp_path / "n.npz")
    assert "ansorpy dataset train DATA" in str(caught.value.hint)
    with pytest.raises(ForeignFile, match="cannot read .*none.npz: No such file"):
        read_network(tmp_path / "none.npz")
