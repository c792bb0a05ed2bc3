"""Events as JSON, one object a line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ansorpy.api.display.json_lines import JsonLines, event_dict
from ansorpy.api.events import PeerTimed
from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Event
from tests.api.display.events import LARGE, SMALL, planned, report


def test_each_event_is_a_line(tmp_path: Path) -> None:
    file = io.StringIO()
    with JsonLines(file) as lines:
        lines(planned(tmp_path / "t.db", trials=64))
        lines(report(best_s=2e-3, failures={TrialKind.CRASH: 2}))
        lines(PeerTimed("openvino", 3e-3))
    plan, progress, peer = map(json.loads, file.getvalue().splitlines())
    assert [task["task"] for task in plan["tasks"]] == [LARGE.name, SMALL.name]
    assert plan["event"] == "plan" and plan["trials"] == 64
    assert progress["best_ms"] == 2.0 and progress["failures"] == {"crash": 2}
    assert peer == {"event": "peer", "name": "openvino", "ms": 3.0}


def test_other_events_have_no_form() -> None:
    with pytest.raises(TypeError, match="unknown event"):
        event_dict(Event())
