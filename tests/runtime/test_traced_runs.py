"""Traces of runs: each thread's parts of each kernel, and what the caller waits for."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects.perf_map import map_path
from ansorpy.codegen.llvm.threads.traced_runs import trace_of_runs
from ansorpy.errors import UsageError
from tests.runtime import programs
from tests.traces import assert_is_trace

CALLER = "thread 0, which calls"


def test_runs_are_traced(rng: np.random.Generator) -> None:
    model, _ = programs.model(rng)
    trace = model.trace({"x": programs.feed(rng)}, runs=2)
    slices = assert_is_trace(trace.to_dict())
    names = [event["name"] for event in slices[CALLER] if "piece" not in event["args"]]
    calls = [name for name, _ in model.profile({"x": programs.feed(rng)}, runs=1)]
    assert [name for name in names if name != "wait"] == 2 * ["run", *calls]
    with pytest.raises(UsageError, match="runs must be a whole number of at least 1, got 0"):
        model.trace({"x": programs.feed(rng)}, runs=0)


def test_pieces_and_waits_are_placed() -> None:
    me, other = 17, 99
    events = np.array([
        [1, 0, me, 110, 150], [1, 1, other, 120, 180], [2, 2, me, 105, 190], [0, 0, me, 100, 200],
        [0, 1, me, 200, 260],
    ]) * [1, 1, 1, 1000, 1000]  # fmt: skip
    trace = trace_of_runs("net", ["first", "second"], [(90_000, 270_000)], events)
    found = [(s.track, s.name, s.start_us, s.end_us) for s in trace.slices]
    assert found == [
        (CALLER, "run", 90, 270), (CALLER, "first", 100, 200), (CALLER, "first", 110, 150),
        ("thread 1", "first", 120, 180), (CALLER, "wait", 105, 110), (CALLER, "wait", 150, 190),
        (CALLER, "second", 200, 260),
    ]  # fmt: skip
    assert_is_trace(trace.to_dict())


def test_perf_knows_the_functions_in_memory(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSORPY_PERF", "1")
    assert map_path().name == f"perf-{os.getpid()}.map"
    try:
        model, _ = programs.model(rng)
        model(programs.feed(rng))
        lines = map_path().read_text().splitlines()
    finally:
        map_path().unlink(missing_ok=True)
    functions = [re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) (\S.*)", line) for line in lines]
    found = {match[3]: (int(match[1], 16), int(match[2], 16)) for match in functions if match}
    assert len(lines) == len([match for match in functions if match])
    assert found["first"][1] > 0 and found["tail"][0] > 0  # the second call is the first's code
    assert any(name.startswith("first.") for name in found)  # what its threads run
    of_first = sorted(place for name, place in found.items() if name.split(".")[0] == "first")
    assert all(a + size <= b for (a, size), (b, _) in zip(of_first, of_first[1:], strict=False))
