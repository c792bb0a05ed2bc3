"""``report --html`` and ``compile --report`` write a page, or say what they lack."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

from ansorpy.api.evaluate import report
from ansorpy.cli import searching
from ansorpy.cli.main import main
from ansorpy.target import Target
from tests.evaluation.page.conftest import tuned as tuned
from tests.evaluation.page.test_facts import BENCH, VERIFIED
from tests.frontend.models import graph_model, node


def _facts(page: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(
        page.read_text().partition('id="facts">')[2].partition("</script>")[0]
    )
    return facts


def test_a_page_of_a_database(tuned: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    (tmp_path / "bench.json").write_text(json.dumps(BENCH))
    (tmp_path / "verify.json").write_text(json.dumps(VERIFIED))
    page = tmp_path / "out.html"
    more = ["--bench", str(tmp_path / "bench.json"), "--verify", str(tmp_path / "verify.json")]
    assert main(["report", "--html", str(page), "--db", str(tuned), "--run", "1", *more]) == 0
    facts = _facts(page)
    assert facts["run"]["number"] == 1 and facts["verified"]["against"] == "onnxruntime"
    assert facts["bench"]["calls"][0]["name"] == "c"


def test_compile_reports_its_search(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    weights = {"w": np.ones((7, 5), np.float32)}
    model, page = tmp_path / "one.onnx", tmp_path / "out.html"
    onnx.save(
        graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 7)}, ["y"], weights), model
    )
    search = [str(model), "-o", str(tmp_path / "one.so"), "--db", str(tmp_path / "t.db")]
    assert main(["compile", *search, "--trials", "3", "--report", str(page)]) == 0
    facts = _facts(page)
    assert facts["title"] == "one" and facts["memory"]["calls"] == [facts["tasks"][0]["label"]]
    assert f"wrote {page}" in capfd.readouterr().out
    assert main(["compile", *search, "--effort", "none", "--report", str(page)]) == 2
    assert "a report shows a search, and this effort measures nothing" in capfd.readouterr().err


@pytest.mark.skipif("x86" not in Target.host().triple, reason="needs an x86 CPU")
def test_a_page_shows_the_first_target_that_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}
    written = SimpleNamespace(versions=[Mock(), Mock()], tell=lambda talk, lookup: None)
    monkeypatch.setattr(Target, "runs_on_host", lambda target: target.name == "host")
    monkeypatch.setattr(report, "demand_charts", lambda: None)
    monkeypatch.setattr(report, "write_report", lambda *page, **what: seen.update(what))
    monkeypatch.setattr(searching, "write_library", lambda runs, *rest: written)
    model = tmp_path / "one.onnx"
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (3, 7)}, ["y"]), model)
    asked = ["compile", str(model), "-o", str(tmp_path / "one.a"), "--db", str(tmp_path / "t.db")]
    targets = ["--target", "x86-64-v2,host", "--trials", "3"]
    assert main([*asked, *targets, "--report", str(tmp_path / "page.html"), "-v"]) == 0
    assert seen["extras"].plan is written.versions[1].plan
    [task] = seen["tasks"]
    assert Target.host().key in task
    assert "seconds" in capsys.readouterr().err


def test_wrong_use(tuned: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--run", "1", "--db", str(tuned)]) == 2
    assert "--run is for a page" in capfd.readouterr().err
    library = tmp_path / "net.so"
    library.write_bytes(b"\x7fELF")
    page = ["--html", str(tmp_path / "out.html"), "--db", str(tuned)]
    assert main(["report", str(library), *page]) == 2
    assert "net.so is a library, which does not name its tasks" in capfd.readouterr().err
