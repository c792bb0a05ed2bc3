"""Outcomes: lines that are appended, and found again under the same conditions only."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile
from benchmarks.common.compared import code_version
from benchmarks.study.outcomes import Conditions, Outcome, Outcomes

HERE, THERE = Conditions("1+abc", "this one"), Conditions("1+abc", "another")


def outcome(key: str, conditions: Conditions = HERE, **value: object) -> Outcome:
    return Outcome.now(key, conditions, value=dict(value), seconds=1.0, others=0.0)


def test_outcomes_are_kept_by_conditions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "outcomes.jsonl"
    here, there = Outcomes(path, HERE), Outcomes(path, THERE)
    here.add(outcome("a/b/1", x=float("inf")))
    there.add(outcome("a/b/1", THERE, x=2))
    here.add(outcome("a/c/1", x=3))
    again = Outcomes(path, HERE)
    assert "a/b/1" in again and "b" not in again
    assert again.values("a") == {("b", "1"): {"x": float("inf")}, ("c", "1"): {"x": 3}}
    assert again.values("a", "c") == {("1",): {"x": 3}} and again.value("a") is None
    assert again.others == {THERE} and Outcomes(path, THERE).value("a/b/1") == {"x": 2}


def test_the_last_outcome_of_a_job_counts(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    found = Outcomes(path, HERE)
    failed = Outcome.now("a/1", HERE, value=None, error="no", seconds=1.0, others=0.0)
    found.add(failed)
    assert "a/1" in found and found.values("a") == {} and found.failures("a") == {"a/1": "no"}
    found.add(outcome("a/1", x=1))
    assert Outcomes(path, HERE).value("a/1") == {"x": 1} and not found.failures("a")
    found.forget(["a/1"])
    assert "a/1" not in found and "a/1" in Outcomes(path, HERE)


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    Outcomes(path, HERE).add(outcome("a/1", x=1))
    whole = path.read_text()
    path.write_text(whole + whole[:20])
    assert [o.key for o in Outcomes(path, HERE)] == ["a/1"]
    path.write_text("something\n" + whole)
    with pytest.raises(ForeignFile, match="line 1 of .* is not an outcome"):
        Outcomes(path, HERE)


def test_code_has_a_version() -> None:
    assert code_version() == code_version() and "+" in code_version()
    assert Conditions.today().code == code_version()


def test_outcomes_of_earlier_code_count_where_there_are_none_of_todays(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    older, oldest = Conditions("1+b", "this one"), Conditions("1+a", "this one")
    for made, key, x in (
        (HERE, "a/1", 1), (oldest, "a/1", 2), (oldest, "a/2", 3), (older, "a/2", 4),
        (oldest, "a/3", 5), (THERE, "a/4", 6),
    ):  # fmt: skip
        Outcomes(path, made).add(outcome(key, made, x=x))
    found = Outcomes(path, HERE, [older.code, oldest.code])
    assert found.values("a") == {("1",): {"x": 1}, ("2",): {"x": 4}, ("3",): {"x": 5}}
    assert [o.code for o in found.of(["a/3", "a/2", "a/5"])] == [oldest.code, older.code]
    assert found.others == {THERE}
