"""The benchmark of the search's own speed runs, and its figures add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.throughput import Phases, main


def test_small_tables_are_measured_and_written(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(["--only", "matmul", "--rows", "32", "--repeats", "1", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    cases, [whole] = found["phases"], found["rounds"]
    assert whole["case"] == "matmul" and whole["candidates"] > 256
    assert min(whole["new_per_s"], whole["known_per_s"]) > 0
    assert [c["case"] for c in cases[:1]] == ["matmul, direct 0"]
    assert all(c["candidates"] > 0 and c["featured_per_s"] >= c["scored_per_s"] > 0 for c in cases)


def test_rates_are_those_of_the_phases_together() -> None:
    phases = Phases("x", 1, 10, 1.0, 1.0, 1.0, 2.0, 3.0, 2.0)
    assert phases.featured_per_s == pytest.approx(200_000)
    assert phases.scored_per_s == pytest.approx(100_000)
