"""What benchmarks write into documents stands between marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import Table
from benchmarks.common.pages import between_marks, into, marks, publish


def test_tables_go_between_the_marks_again_and_again() -> None:
    begin, end = marks("a.benchmark")
    once = into(f"before\n{begin}\nold\n{end}\nafter\n", "new", "a.benchmark")
    assert once == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert between_marks(once, "a.benchmark") == "new" and not between_marks(once, "a")
    assert into(once, "newer", "a.benchmark") == f"before\n{begin}\nnewer\n{end}\nafter\n"
    with pytest.raises(UsageError, match="no place for the tables"):
        into(f"{end} {begin}", "new", "a.benchmark")


def test_tables_of_a_page_say_when_and_where_they_were_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Figures\n\n<!-- b -->\nold\n<!-- end of b -->\n\nprose\n")
    for cell in ("1", "2"):
        publish([Table("Times", ("case", "us"), (("a", cell),))], "b", page)
    lines = page.read_text().splitlines()
    assert lines[:3] == ["# Figures", "", "<!-- b -->"] and lines[3].startswith("Measured on 20")
    assert lines[4:] == [
        "", "Times:", "", "| case | us |", "| --- | --- |", "| a | 2 |", "<!-- end of b -->", "",
        "prose",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no place for the tables"):
        publish([], "c", page)
