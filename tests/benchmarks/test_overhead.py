"""What calls and memory cost beside the arithmetic, measured on the smallest network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ansorpy as ap
from benchmarks.overhead import __main__ as overhead
from benchmarks.overhead.__main__ import Bench, main, table_of
from benchmarks.overhead.probe import PROBES

pytest.importorskip("onnxruntime")


def test_every_part_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_a_process = overhead.probe

    def probe(what: str, given: Mapping[str, Any]) -> dict[str, float]:
        """Only "first" has a process of its own, which begins with a second of imports."""
        return in_a_process(what, given) if what == "first" else PROBES[what](given)

    monkeypatch.setattr(overhead, "probe", probe)
    file = tmp_path / "overhead.json"
    asked = ["--small", "apart", "--networks", "apart", "--threads", "1", "--repeats", "1"]
    assert main([*asked, "--folder", str(tmp_path), "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert set(found) == {"threads", "compiled", "calls", "first"}
    compiled = found["compiled"]["apart"]["ansorpy"]
    assert compiled["peak_mib"] > 10 and compiled["constants_mib"] >= compiled["given_mib"] > 0
    for engine in ("ansorpy", "onnxruntime"):
        calls, first = found["calls"]["apart"][engine], found["first"]["apart"][engine]
        assert min(calls.values()) > 0 and first["run_mib"] >= first["loaded_mib"] > 10
    assert found["calls"]["apart"]["ansorpy"]["c_us"] > 0
    printed = capsys.readouterr().out
    assert "from C, us" in printed and "rise, MiB" in printed


def test_tables_leave_out_what_an_engine_does_not_have() -> None:
    calls = {"a": {"one": {"run_us": 1.0, "into_arrays_us": 2.0, "c_us": 0.5},
                   "other": {"run_us": 3.0, "into_arrays_us": 4.0}}}  # fmt: skip
    table = table_of("calls", calls)
    assert table.rows == (("a", "one", "1.00", "2.00", "0.500"), ("a", "other", "3.00", "4.00", ""))


def test_compiling_starts_without_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        constant_bytes = 0

        def export(self, library: str) -> None:
            """Nothing is written."""

    def compile(onnx: str, *, db: Path, **given: Any) -> Made:
        assert not db.exists()
        db.write_text("of this run")
        return Made()

    monkeypatch.setattr(ap, "compile", compile)
    bench = Bench(tmp_path, threads=1, effort="quick", repeats=1)
    for _ in range(2):
        PROBES["compiled"](bench.given("apart"))


def test_libraries_are_compiled_once_a_run_also_where_there_are_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def probe(what: str, given: Mapping[str, Any]) -> dict[str, float]:
        asked.append(what)
        return {"run_us": 1.0}

    monkeypatch.setattr(overhead, "probe", probe)
    (tmp_path / "apart_none_1.so").write_bytes(b"of yesterday's code")
    bench = Bench(tmp_path, threads=1, effort="none", repeats=1)
    bench.measured("calls", ["apart"])
    assert asked == ["compiled", "calls", "calls"]
    bench.measured("first", ["apart"])
    assert asked.count("compiled") == 1
