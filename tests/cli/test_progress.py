"""What a verb says while it works: text, nothing, or events."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ansorpy.api import parts
from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.cli.progress import SearchReport, Talk, limits_text, project_text
from ansorpy.cli.status_line import StatusLine
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import UsageError
from ansorpy.evaluation.random_networks import random_network
from ansorpy.search.events import Phase
from tests.api.display.events import LARGE, planned, report


def said(talk: Talk, tmp_path: Path) -> str:
    file = io.StringIO()
    with SearchReport(talk, file) as shown:
        shown(planned(tmp_path / "t.db", trials=8))
        shown(report(phase=Phase.FINISHED, total_trials=8, trial_limit=8, total_s=1e-3))
    assert shown.board.total_s == 1e-3
    return file.getvalue()


def test_the_plan_is_shown_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(parts, "pretrained_for", lambda _: None)
    limits = f"tuning up to 8 trials, records in {tmp_path / 't.db'}\n"
    short, long = said(Talk(), tmp_path), said(Talk(verbose=True), tmp_path)
    ended = f"trials 8/8  best 1.000 ms  {LARGE.name}: -\n"
    assert short == limits + ended
    assert long.startswith(f"{limits}plan: about 8 trials in ") and long.endswith(ended)


def test_quiet_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(Talk(quiet=True), tmp_path) == ""
    with StatusLine(quiet=True) as status:
        status("round 1")
    assert capsys.readouterr() == ("", "")


def test_events_go_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(Talk(json=True), tmp_path) == ""
    with StatusLine(as_json=True) as status:
        status("round 1")
    events = [*map(json.loads, capsys.readouterr().out.splitlines())]
    assert [event["event"] for event in events] == ["plan", "progress", "progress"]
    assert events[-1]["text"] == "round 1"


def test_a_status_line_comes_seldom_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with StatusLine() as status:
        for number in range(3):
            status(f"round {number}")
    assert capsys.readouterr().err == "round 0\n"


@pytest.mark.parametrize(
    ("shipped", "cost_model", "ranked"),
    [
        (True, "boosted", "by the model that ships for a family"),
        (True, "analytic", "by the closed-form model"),
        (True, "random", "by the given model"),
        (False, "boosted", "by the closed-form model"),
    ],
)
def test_the_plan_says_what_ranks_if_nothing_is_measured(
    shipped: bool, cost_model: str, ranked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SavedModel("a family", 12, 3, ()) if shipped else None
    monkeypatch.setattr(parts, "pretrained_for", lambda target: found)
    request = Request.of(effort="none", cost_model=cost_model)
    assert limits_text(request) == f"nothing is measured; programs are ranked {ranked}"


@pytest.mark.parametrize(
    ("cost_model", "begun"),
    [("boosted", "\nthe search starts from the model that ships for a family"), ("analytic", "")],
)
def test_the_plan_says_what_a_search_starts_from(
    cost_model: str, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "pretrained_for", lambda _: SavedModel("a family", 12, 3, ()))
    request = Request.of(trials=8, time_limit="1h30m", cost_model=cost_model, db="own.db")
    assert limits_text(request) == f"tuning up to 8 trials, 1h30m, records in own.db{begun}"


def test_the_plan_counts_what_is_compiled() -> None:
    request = Request.of(effort="none", threads=1)
    project = open_project(random_network(0), request)
    text = project_text(project, request)
    kernels = len(project.network.calls)
    assert f"{kernels} kernel{'s' if kernels > 1 else ''}, " in text
    assert text.endswith(f"for {request.target.name}, 1 thread")


def test_quiet_and_verbose_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--quiet and --verbose exclude each other"):
        Talk(quiet=True, verbose=True)
