"""Tuning runs with networks: they end, and a replay makes the same trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.tasks.test_replay import QUICK, replayed, tune


def test_a_network_in_use_learns_every_trial_once(tmp_path: Path) -> None:
    model = MODELS.one("tlp")
    assert isinstance(model, NetworkModel)
    options = TuneOptions(SearchOptions(SAMPLING), model=MODELS.shared(model))
    for trials in (12, 20):
        tune(tmp_path / "a.db", Budget(trials=trials), FormulaRunner(), options)
    assert len(model.data) == 20


@pytest.mark.parametrize("name", ["halide", "tlp"])
def test_a_run_is_replayed(name: str, tmp_path: Path) -> None:
    options = replace(QUICK, model=MODELS.factory(name))
    tune(tmp_path / "a.db", Budget(trials=40), FormulaRunner(noise=0.2), options)
    again = replayed(tmp_path / "a.db", options=options)
    assert (again.divergence, again.trials) == ("", 40)
