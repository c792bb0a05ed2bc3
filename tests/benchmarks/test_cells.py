"""Tables of a benchmark replace those of an earlier run in a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table
from benchmarks.cells import write_into


def test_tables_have_a_place_in_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Figures\n\n<!-- b -->\nold\n<!-- end of b -->\n\nprose\n")
    for cell in ("1", "2"):
        write_into(page, "b", [Table("Times", ("case", "us"), (("a", cell),))])
    lines = page.read_text().splitlines()
    assert lines[:3] == ["# Figures", "", "<!-- b -->"] and lines[3].startswith("Measured on 20")
    assert lines[4:] == [
        "", "Times:", "", "| case | us |", "| --- | --- |", "| a | 2 |", "<!-- end of b -->", "",
        "prose",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no place for the tables"):
        write_into(page, "c", [])
