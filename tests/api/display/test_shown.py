"""How a search in Python is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansorpy.api.display.shown import shown
from ansorpy.errors import UsageError
from ansorpy.search.events import Phase, silent
from tests.api.display.events import planned, report


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
