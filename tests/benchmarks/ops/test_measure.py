from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.bench.turns import Policy
from benchmarks.ops import engines
from benchmarks.ops.families.norms import MatrixNorm
from benchmarks.ops.measure import OperatorSettings, measure
from benchmarks.ops.providers import PROVIDERS, Provider
from benchmarks.ops.reference import Reference
from benchmarks.ops.suite import CALL, case_named

QUICK = Policy(burst_s=0.002, untimed_s=0.001, rounds=(1, 1))


def test_ours_and_a_peer_are_timed_and_a_stranger_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setitem(PROVIDERS, "torch", Provider("benchmarks.ops.absent:torch", "none"))
    settings = OperatorSettings(tmp_path / "ops.db", 0, "none", 0, ("onnxruntime", "torch"), QUICK)
    lines: list[str] = []
    result = measure(CALL, 1, settings, lines.append)
    assert list(result.engines) == ["ansorpy", "onnxruntime"]
    assert all(e.median_ms > 0 and e.runs >= 5 for e in result.engines.values())
    assert "No module named" in result.failures["torch"]
    assert result.program.startswith("kernel(") and result.algorithm == "direct"
    assert result.roofline_ms > 0 and result.fork_join_ms == 0
    assert lines[0].startswith("CALL.16: tuned for 1 threads")


def test_a_peers_inputs_lie_where_ours_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str, path: str, feeds: dict[str, np.ndarray], threads: int) -> None:
        assert [array.ctypes.data % 64 for array in feeds.values()] == [0]
        raise UsageError("far enough")

    monkeypatch.setattr(engines, "open_engine", opened)
    with pytest.raises(UsageError, match="far enough"):
        engines.open_onnx("onnxruntime", "CALL.16", threads=1, seed=0, reference="")


def test_reference_is_right_and_refuses_what_is_not(tmp_path: Path) -> None:
    case = MatrixNorm("NRM", 5, 7, 3)
    right = np.sqrt((case.values(0)["x"].astype(np.float64) ** 2).sum(axis=(1, 2)))
    path = tmp_path / "reference.npz"
    Reference.of(case, 0).save(path)
    reference = Reference.load(path)
    np.testing.assert_allclose(reference.values, right[reference.points[:, 0]])
    for factor, agreeing in ((1, ["ansorpy", "torch"]), (1.001, ["torch"]), (1.1, [])):
        for engine in ("ansorpy", "torch"):
            output = (right * factor).astype(np.float32)
            if engine in agreeing:
                reference.check(engine, case, output)
                continue
            with pytest.raises(VerificationFailed, match=f"{engine} gives a wrong NRM.*: out"):
                reference.check(engine, case, output)


def test_the_reference_of_a_large_case_takes_fewer_points() -> None:
    case = case_named("C3D.16x7x7.512-512.k3s1.b1")
    assert 256 <= len(Reference.of(case, 0).values) <= 4096
