"""Recording a tiny space on this machine, in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ops.families.matmul import Matmul
from benchmarks.spaces import record
from benchmarks.spaces.catalogue import Plan
from benchmarks.spaces.grid import PENDING, read_grid


def test_a_space_is_recorded_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan("tiny", Matmul("GMM", 24, 32, 16), points=12, threads=1)
    monkeypatch.setattr(record, "WORK", tmp_path / "work")
    monkeypatch.setattr(Plan, "path", property(lambda self: tmp_path / "spaces/tiny.npz"))
    monkeypatch.setattr(record, "plan_named", lambda name: plan)
    monkeypatch.setattr(record, "DRIFT", 100.0)
    monkeypatch.setattr(record, "DISTURBED", 100.0)
    assert record.main(["matmul", "--build"]) == 0
    assert (read_grid(tmp_path / "work/tiny.npz").kinds == PENDING).all()
    assert record.main(["matmul"]) == 0
    grid = read_grid(tmp_path / "spaces/tiny.npz")
    assert grid.is_complete and grid.header.default_s is not None
    assert not (tmp_path / "work/tiny.objects").exists()
    assert record.main(["matmul"]) == 0
