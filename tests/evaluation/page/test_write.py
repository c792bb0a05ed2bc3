"""The page is one file that needs nothing else, whatever the names in it are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.evaluation.page.write import demand_charts, write_page
from ansorpy.measure.records.database import Database


@pytest.fixture(scope="session")
def page(tuned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    path = tmp_path_factory.mktemp("page") / "out.html"
    with Database(tuned) as database:
        write_page(path, database)
    return path


def test_it_is_self_contained_and_small(page: Path) -> None:
    text = page.read_text()
    assert len(text) < 8e6
    head = text.partition('id="facts">')[0]
    assert "<link" not in head and "src=" not in head and "{{" not in head
    assert "default-src 'none'" in head


def test_names_and_reasons_cannot_end_the_data(page: Path) -> None:
    text = page.read_text()
    assert "<title>a &lt;/script&gt; network · ansorpy report</title>" in text
    data = text.partition('id="facts">')[2].partition("</script>")[0]
    facts = json.loads(data)
    assert "<" not in data and facts["title"] == "a </script> network"
    reasons = [f["reason"] for task in facts["tasks"] for f in task["failures"]]
    assert any("<script>boom</script>" in reason for reason in reasons)


def test_without_the_library_of_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependency, match="needs the library that draws its charts") as error:
        demand_charts()
    assert error.value.hint == "install it: pip install 'ansorpy[report]'"


def test_a_file_that_cannot_be_written(database: Database, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    with pytest.raises(UsageError, match="cannot write"):
        write_page(tmp_path / "none" / "out.html", database)
