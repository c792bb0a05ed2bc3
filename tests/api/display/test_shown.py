"""How a search in Python is shown."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ansorpy as ap
from ansorpy.api.display.shown import Shown, say, shown
from ansorpy.errors import UsageError
from ansorpy.search.events import Phase, silent
from tests.api.display.events import planned, report
from tests.graph.nets import Net


def _tuned(progress: Shown) -> None:
    a = ap.placeholder((4,), name="A")
    b = ap.compute((4,), lambda i: a[i] + 1.0, name="B")
    ap.tune([a, b], effort="none", threads=1, progress=progress)


def _compiled(progress: Shown) -> None:
    net = Net(x=(3, 4))
    ap.compile(net.model(net.relu("x")), effort="none", threads=1, progress=progress)


def test_nothing_is_shown_off_a_terminal_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, last = planned(tmp_path / "t.db", trials=8), report(phase=Phase.FINISHED, total_trials=8)
    for progress in ("auto", False, True):
        with shown(progress) as listener:
            assert (listener is silent) == (progress is not True)
            listener(plan)
            listener(last)
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == [
        "trials", f"{plan.name}:",
    ]  # fmt: skip


@pytest.mark.parametrize("search", [_tuned, _compiled])
@pytest.mark.parametrize("progress", ["auto", False])
def test_the_default_database_is_named_unless_nothing_may_be_shown(
    search: Callable[[Shown], None],
    progress: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("ANSORPY_DB")
    monkeypatch.setenv("ANSORPY_CACHE", str(tmp_path))
    search(progress)
    said = "" if progress is False else f"records: {tmp_path / 'tune.db'}\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_process_without_stderr_is_told_nothing(
    is_closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if is_closed else None)
    monkeypatch.setattr(sys, "stdout", None)
    plan = planned(tmp_path / "t.db", trials=8)
    for progress in ("auto", True, False):
        with shown(progress) as listener:
            listener(plan)
            listener(report(phase=Phase.FINISHED, total_trials=8))
        assert listener is silent
    say("records: tune.db")


def test_what_stands_in_for_stderr_need_not_say_whether_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tee:
        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> None:
            self.text += text

    tee = Tee()
    monkeypatch.setattr(sys, "stderr", tee)
    say("records: tune.db")
    assert tee.text == "records: tune.db\n"


def test_a_function_receives_the_events() -> None:
    seen: list[Any] = []
    with shown(seen.append) as listener:
        listener(report())
    assert len(seen) == 1


def test_other_values_are_refused() -> None:
    with (
        pytest.raises(UsageError, match="progress cannot be 'yes'"),
        shown("yes"),  # type: ignore[arg-type]
    ):
        pass
