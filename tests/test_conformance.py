"""The short form of onnx's backend suite, by its own runner; what its long form wrote."""

from __future__ import annotations

import importlib
import unittest
import warnings
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import onnx.backend.test.case.node as node_cases
import pytest
from onnx.backend.test import BackendTest
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase

from ansorpy import onnx_backend
from tests.campaigns.conformance.results import RESULTS, Result, lost, read, write
from tests.campaigns.conformance.scope import is_drawn, out_of_scope
from tests.campaigns.conformance.table import PAGE, page

SAMPLE = {
    "add": ["test_add_bcast"],
    "cumsum": ["test_cumsum_2d_axis_1"],
    "reducesum": ["test_reduce_sum_keepdims_example"],
    "softmax": ["test_softmax_axis_0"],
}
"""Cases by the module that makes them; axes are inputs that must be known."""


def sample() -> list[TestCase]:
    """The cases of :data:`SAMPLE`: the modules of all others are not imported."""
    with warnings.catch_warnings(action="ignore"), patch.object(base, "process_snippet", _unsaid):
        for module in SAMPLE:
            importlib.import_module(f"{node_cases.__name__}.{module}")
    wanted = {name for names in SAMPLE.values() for name in names}
    return [case for case in node_cases._NodeTestCases if case.name in wanted]


def _unsaid(op: str, name: str, export: object) -> tuple[str, str]:
    return name, ""


def test_a_sample_of_the_suite_passes() -> None:
    cases = {"node": sample()}
    assert len(cases["node"]) == sum(map(len, SAMPLE.values()))
    with patch("onnx.backend.test.runner.load_model_tests", lambda kind: cases.get(kind, [])):
        tests = BackendTest(onnx_backend.AnsorpyBackend, __name__).test_suite
    result = unittest.TextTestRunner(StringIO()).run(tests)
    assert result.wasSuccessful(), (result.failures, result.errors)
    assert result.testsRun - len(result.skipped) == len(cases["node"])  # others need a GPU


def test_the_page_is_what_the_results_say() -> None:
    hint = "run python -m tests.campaigns.conformance --accept"
    assert PAGE.read_text() == page(read(RESULTS).values()), hint


def test_what_fails_has_a_reason() -> None:
    results = read(RESULTS)
    assert len(results) == 2033
    assert all(r.reason for r in results.values() if r.verdict != "passed")
    outside = [name for name in results if out_of_scope(name)]
    assert {results[name].reason for name in outside} == {out_of_scope(n) for n in outside}
    assert len(outside) == 41 and sum(map(is_drawn, results)) == 10


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = [
        Result("b", "Add", 13, "float", "failed", 'Error: "1, 2" | 3'),
        Result("a", "ai.onnx.ml.Scaler", 1, "float int64", "passed"),
    ]
    write(tmp_path / "r.csv", found)
    assert read(tmp_path / "missing.csv") == {}
    assert list(read(tmp_path / "r.csv").values()) == found[::-1]
    assert '| Add | 13 | float | 1 | failed | Error: "1, 2" \\| 3 |' in page(found)


@pytest.mark.parametrize(("verdict", "worse"), [("passed", 0), ("refused", 1), ("failed", 1)])
def test_what_no_longer_passes_is_found(verdict: str, worse: int) -> None:
    before = {name: Result(name, "Add", 13, "float", "passed") for name in ("a", "b")}
    now = {"a": Result("a", "Add", 13, "float", verdict), "c": before["b"]}
    assert len(lost(before, now)) == worse
