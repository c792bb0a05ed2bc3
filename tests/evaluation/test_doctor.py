"""What the examination of a machine tells beside what is missing, measured rates included."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from ansorpy.config import available_cores
from ansorpy.evaluation.doctor import Examination, examine
from ansorpy.measure.fleet.base import kind_of
from ansorpy.measure.probe import calibrate
from ansorpy.rates import Rates
from ansorpy.target import Target

RATES = Rates(4e9, 2.0, 2.5, 1.0, 60.0, 25.0, 1e11, 3e10, 5e10, 1e-6)


@pytest.fixture(autouse=True)
def no_probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSORPY_CALIBRATE", "1")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "measure_rates", lambda: RATES)


def detail(examination: Examination) -> str:
    [finding] = [f for f in examination.findings if f.name == "rates"]
    return finding.detail


def test_rates_are_shown_once_they_were_measured() -> None:
    before = examine()
    assert before.rates is None and detail(before) == "not measured yet"
    assert before.to_dict()["rates"] is None
    assert examine(calibrate=True).rates == RATES
    after = examine()
    assert after.to_dict()["rates"] == RATES.to_dict()
    assert detail(after).startswith("4.00 GHz; a cycle 2.0 multiply-adds, 1.0 stores, 60 bytes")


def test_a_damaged_file_is_named() -> None:
    examine(calibrate=True)
    calibrate.rates_file().write_text("{")
    assert "does not contain rates of this machine" in detail(examine())
    assert examine(calibrate=True).rates == RATES


def test_it_says_what_a_ray_node_here_may_offer() -> None:
    [finding] = [f for f in examine().findings if f.name == "as a node"]
    _, _, resources = finding.detail.partition("--resources=")
    assert json.loads(resources.strip("'")) == {kind_of(Target.host()): available_cores()}
    assert not finding.needed


def test_every_package_that_is_needed_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    found = {finding.name for finding in examine().findings if finding.needed}
    assert needed - {"llvmlite"} <= found and "llvm" in found
