"""The page on ONNX operators lists what there is."""

from __future__ import annotations

from pathlib import Path

from ansorpy.frontend.onnx.registry import CONTROL, OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "onnx.md"


def test_every_operator_is_in_the_table_once() -> None:
    """A row of another domain than onnx's begins with its name in backticks."""
    listed = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("|"):
            _, family, names, _ = line.split("|")
            domain = family.strip().strip("`") + "." if "`" in family else ""
            listed.append([f"{domain}{name}" for name in names.split()])
    assert sorted(name for row in listed[2:] for name in row) == sorted([*OPERATORS, *CONTROL])
