"""What benchmarks write into documents stands between marks."""

from __future__ import annotations

import pytest

from ansorpy.errors import UsageError
from benchmarks.document import into, marks


def test_tables_go_between_the_marks_again_and_again() -> None:
    begin, end = marks("a.benchmark")
    once = into(f"before\n{begin}\nold\n{end}\nafter\n", "new", "a.benchmark")
    assert once == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert into(once, "newer", "a.benchmark") == f"before\n{begin}\nnewer\n{end}\nafter\n"
    with pytest.raises(UsageError, match="no place for the tables"):
        into(f"{end} {begin}", "new", "a.benchmark")
