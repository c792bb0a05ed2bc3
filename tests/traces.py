"""What every trace must be, as the readers of its format require."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

__all__ = ["assert_is_trace"]


def assert_is_trace(trace: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The slices of each track by its name; those of one track are disjoint or nested."""
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    names, slices = {}, defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["pid"] == 1 and event["tid"] >= 0
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                names[event["tid"]] = event["args"]["name"]
            continue
        assert event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0
        assert isinstance(event["args"], dict)
        slices[names[event["tid"]]].append(event)
    for track in slices.values():
        open_ends: list[float] = []
        for event in track:  # in the order of their starts
            while open_ends and open_ends[-1] <= event["ts"] + 1e-6:
                open_ends.pop()
            assert not open_ends or event["ts"] + event["dur"] <= open_ends[-1] + 1e-6
            open_ends.append(event["ts"] + event["dur"])
    return slices
