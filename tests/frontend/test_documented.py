"""The page on ONNX operators lists what there is."""

from __future__ import annotations

from pathlib import Path

from ansorpy.frontend.onnx.registry import CONTROL, OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"


def test_every_operator_is_in_the_table_once() -> None:
    rows = [line.split("|")[2].split() for line in PAGE.read_text().splitlines()
            if line.startswith("|")]  # fmt: skip
    listed = [name for row in rows[2:] for name in row]
    assert sorted(listed) == sorted([*OPERATORS, *CONTROL])
