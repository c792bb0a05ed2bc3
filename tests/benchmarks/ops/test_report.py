from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansorpy.report.bench.turns import Timing
from benchmarks.ops.__main__ import main, parser
from benchmarks.ops.measure import Measured
from benchmarks.ops.report import as_json, cases_table, groups_table
from benchmarks.ops.suite import case_named

PRODUCT, NORM = case_named("GMM.128x128x128.b1"), case_named("LN.128x768")


def measured(name: str, threads: int, **ms: float) -> Measured:
    timings = {}
    for engine, value in ms.items():
        timings[engine] = Timing("1.0")
        timings[engine].add([value * 1e-3])
    return Measured(case_named(name), threads, timings, program="for i in 0..4")


def results() -> list[Measured]:
    return [
        measured(PRODUCT.name, 1, ansorpy=0.5, onnxruntime=2.0, torch=1.0),
        measured(PRODUCT.name, 2, ansorpy=0.5, onnxruntime=4.0, torch=4.5),
        measured(NORM.name, 1, ansorpy=12.5, onnxruntime=6.25, torch=100.0),
        Measured(NORM, 2, measured(NORM.name, 2, torch=1.0).timings, {"ansorpy": "no program"}),
    ]


def test_cases_table() -> None:
    rows = [line.split() for line in cases_table(results()).text().splitlines()]
    assert rows[0] == [
        "case", "threads", "ansorpy", "ms", "onnxruntime", "ms", "torch", "ms", "ratio",
    ]  # fmt: skip
    assert rows[1:] == [
        [PRODUCT.name, "1", "0.5000", "2.000", "1.000", "2.00"],
        [PRODUCT.name, "2", "0.5000", "4.000", "4.500", "8.00"],
        [NORM.name, "1", "12.50", "6.250", "100.00", "0.50"],
        [NORM.name, "2", "failed", "1.000"],
    ]


def test_groups_table_has_geometric_means_and_the_least_ratio() -> None:
    table = groups_table(results())
    assert table.rows == (
        ("GMM", "1", "2.00", "8.00", "2.00", "8.00"),
        ("LN", "1", "0.50", "", "0.50", ""),
        ("all", "2", "1.00", "8.00", "0.50", "8.00"),
    )


def test_json_names_case_engines_and_program() -> None:
    first, *_, last = json.loads(json.dumps(as_json(results())))
    assert (first["case"], first["threads"], first["best_peer"]) == (PRODUCT.name, 1, "torch")
    assert first["ratio"] == 2.0
    assert first["program"] == "for i in 0..4"
    assert first["engines"]["onnxruntime"]["median_ms"] == pytest.approx(2.0)
    assert last["failures"] == {"ansorpy": "no program"} and last["ratio"] is None


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args(["--only", "LN*", "GMM", "--threads", "1", "--trials", "32"])
    assert (options.only, options.threads, options.trials) == (["LN*", "GMM"], [1], 32)
    assert options.db == Path("build/ops.db")
    assert main(["--list", "--only", "LN"]) == 0
    assert capsys.readouterr().out == "LN.128x768\n"
    assert main(["--only", "nothing"]) == 2
    assert "no case fits 'nothing'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["--against", "numpy"])
