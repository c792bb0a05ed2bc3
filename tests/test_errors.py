"""Messages carry what was asked, why not, and the way out; exit codes are the documented ones."""

from __future__ import annotations

import pytest

from ansorpy import errors

CODES = {
    "AnsorpyError": 1, "UsageError": 2, "OutOfBounds": 2, "UnsupportedModel": 3,
    "VerificationFailed": 4, "MissingDependency": 5, "ForeignFile": 6, "ScheduleError": 1,
    "LoweringError": 1, "CodegenError": 1, "DeviceLost": 1, "NoValidProgram": 1, "Interrupted": 130,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_exit_codes(name: str, code: int) -> None:
    error = getattr(errors, name)("it cannot be", hint="do this")
    assert isinstance(error, errors.AnsorpyError)
    assert error.exit_code == code
    assert str(error) == "it cannot be\nhint: do this"


def test_every_error_class_is_in_the_table_above() -> None:
    classes = {n for n in errors.__all__ if isinstance(getattr(errors, n), type)}
    assert classes - {"UnsupportedRow"} == set(CODES)


def test_schedule_error_shows_step_stage_program_and_hint() -> None:
    error = errors.ScheduleError(
        "space and reduce iterators cannot share one loop",
        step="fuse(C, [j, k])",
        stage="C",
        program="  for i\n>   for j\n",
        hint="rfactor",
    )
    assert str(error).splitlines() == [
        "fuse(C, [j, k]): space and reduce iterators cannot share one loop",
        'in stage "C", before this step:',
        "  for i",
        ">   for j",
        "hint: rfactor",
    ]


def test_unsupported_model_lists_every_row() -> None:
    rows = [
        errors.UnsupportedRow("n0", "GRU", shape="1x3", advice="unroll it"),
        errors.UnsupportedRow("n1", "LSTM", shape="1x2", advice="unroll it"),
        errors.UnsupportedRow(
            "second", "Fused", attribute="axis=0", domain="com.example", opset=1, count=3
        ),
    ]
    lines = str(errors.UnsupportedModel("2 operators cannot be compiled", rows=rows)).splitlines()
    assert lines[0] == "2 operators cannot be compiled"
    assert [line.split() for line in lines[1:]] == [
        ["operator", "opset", "count", "first", "node", "at", "fault", "shapes"],
        ["GRU", "1", "n0", "1x3"],
        ["LSTM", "1", "n1", "1x2"],
        ["unroll", "it"],
        ["com.example.Fused", "1", "3", "second", "axis=0"],
    ]
