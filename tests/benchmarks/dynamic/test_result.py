from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansorpy.errors import ForeignFile
from ansorpy.evaluation.bench.turns import Timing
from benchmarks.common.compared import code_version
from benchmarks.dynamic.report import figures_table, sizes_table
from benchmarks.dynamic.result import (
    DynamicResult,
    FirstCall,
    Library,
    Positions,
    SizeTimes,
    versions,
)


def times(size: int, **milliseconds: float) -> SizeTimes:
    timings = {
        name: Timing("1", 0, [[ms * 1e-3]], [ms * 1e-3]) for name, ms in milliseconds.items()
    }
    return SizeTimes.of(size, timings)


def library(size: int | None, seconds: float, count: int) -> Library:
    return Library(file="x.so", size=size, tuning_s=seconds, trials=7, bytes=count)


def result(**parts: Any) -> DynamicResult:
    return DynamicResult(
        model="bert", dim="seq", low=1, high=512, threads=2, effort="quick", seed=0,
        machine={"cpu": "some", "cores": 2}, date="2026-01-02", versions={"ansorpy": "1"}, **parts,
    )  # fmt: skip


FULL = result(
    dynamic=library(None, 30.0, 130),
    fixed=(library(7, 10.0, 90), library(11, 20.0, 100), library(13, 15.0, 110)),
    tuned=(times(7, ansorpy=1.0, fixed=1.0), times(11, ansorpy=4.4, fixed=4.0)),
    peers=(
        times(3, ansorpy=1.0, onnxruntime=2.0, openvino=3.0),
        times(9, ansorpy=1.0, onnxruntime=0.9, openvino=0.5),
    ),
    positions=Positions(
        passes={"ansorpy": ((1.0, 9.0), (1.0, 2.0), (5.0, 2.0)),
                "onnxruntime": ((4.0, 2.0), (4.0, 2.0), (4.0, 2.0))},
    ),
    first_calls=(
        FirstCall(size=3, first_us=30.0, later_us=10.0),
        FirstCall(size=5, first_us=9.0, later_us=8.0),
        FirstCall(size=7, first_us=70.0, later_us=40.0),
    ),
)  # fmt: skip


def test_figures_follow_from_what_was_measured() -> None:
    figures = FULL.figures
    assert figures["over_fixed"] == pytest.approx(1.1**0.5)
    assert figures["over_fixed_worst"] == pytest.approx(1.1)
    assert figures["ratio"] == pytest.approx(1.0) and figures["ratio_least"] == 0.5
    assert figures["step_ratio"] == pytest.approx(2.0)
    assert (figures["bytes"], figures["tuning"], figures["first_call_us"]) == (1.3, 2.0, 20.0)
    assert set(result().figures.values()) == {None}
    alone = result(peers=(times(3, onnxruntime=2.0),), dynamic=library(None, 1.0, 1))
    assert set(alone.figures.values()) == {None}
    assert Positions(passes={"onnxruntime": ((1.0,),)}).ratio is None


def test_a_result_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(FULL.model_copy(update={"errors": {3: 1e-6}}).model_dump_json())
    assert (
        DynamicResult.read(path, "dynamic").errors == {3: 1e-6}
        and DynamicResult.read(path, "dynamic").figures == FULL.figures
    )
    path.write_text("{}")
    with pytest.raises(ForeignFile, match="has no result of benchmarks.dynamic"):
        DynamicResult.read(path, "dynamic")


def test_tables_leave_empty_what_was_not_measured() -> None:
    full, empty = figures_table([FULL, result()]).rows
    assert full[3:] == ("1.05", "1.10", "1.00", "0.50", "2.00", "1.30", "2.00", "20.0")
    assert empty == ("bert", "2", "quick", *[""] * 8)
    rows = sizes_table("peers", "seq", [*FULL.peers, times(5, openvino=12.0)]).rows
    assert rows[0] == ("3", "1.000", "2.000", "3.000") and rows[2] == ("5", "", "", "12.00")


def test_versions_are_those_of_what_is_installed() -> None:
    found = versions()
    assert found["ansorpy"] == code_version()
    assert found["onnx"] and all(value[0].isdigit() for value in found.values())
