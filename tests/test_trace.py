from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile
from ansorpy.trace import Trace
from tests.traces import assert_is_trace


def test_a_trace_is_what_its_readers_require(tmp_path: Path) -> None:
    trace = Trace("net")
    assert trace.to_dict()["traceEvents"][0]["args"] == {"name": "net"} and trace.length_us == 0
    trace.add("second", "late", 30.0, 31.0)
    trace.add("first", "whole", 10.0, 20.0, number=1)
    trace.add("first", "part", 10.0, 15.0)
    assert repr(trace) == "<Trace of net: 3 slices on 2 tracks, 21 us>"
    slices = assert_is_trace(json.loads(trace.save(tmp_path / "t.json").read_text()))
    assert [event["name"] for event in slices["first"]] == ["whole", "part"]
    [late] = slices["second"]
    assert (late["ts"], late["dur"]) == (20.0, 1.0)
    with pytest.raises(ForeignFile, match="cannot write"):
        trace.save(tmp_path / "no" / "t.json")
