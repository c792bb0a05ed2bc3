"""Decoders that hand their caches on, and first calls at new sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.measure.workers.protocol import Message
from benchmarks.dynamic import steps
from benchmarks.dynamic.steps import OrtSteps, OurSteps, Stepper, first_calls, make_handlers
from benchmarks.dynamic.suite import TINY, shapes_at
from tests.benchmarks.dynamic.fakes import Session

CACHES = [
    {"past": f"past_{kind}_{n}", "present": f"present_{kind}_{n}", "shape": (1, 3, 24, 8),
     "axis": 2}
    for n in (0, 1) for kind in ("key", "value")
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny decoder, which also passes for a library."""
    monkeypatch.setattr(steps, "load", Session)
    return str(TINY["decoder"].file(0, tmp_path))


def first_cache(stepper: Stepper) -> NDArray[Any]:
    """A copy of the first cache after the last step."""
    return np.array(stepper.caches()["past_key_0"])


@pytest.mark.parametrize("kind", [OrtSteps, OurSteps])
def test_a_step_appends_a_row_and_keeps_those_before(
    path: str, kind: type[OrtSteps] | type[OurSteps]
) -> None:
    stepper = kind(path, threads=1, caches=CACHES)
    stepper.begin(5)
    stepper.step()
    first = first_cache(stepper)
    stepper.back()
    assert stepper.past == 5
    stepper.step()
    assert np.array_equal(first_cache(stepper), first)
    stepper.step()
    assert stepper.past == 7
    found = first_cache(stepper)
    assert found.shape == (1, 3, 7, 8) and np.array_equal(found[:, :, :6], first)
    assert np.abs(found[:, :, 6] - found[:, :, 5]).max() > 0


def test_caches_in_place_are_one_set_of_arrays(path: str) -> None:
    stepper = OurSteps(path, threads=1, caches=CACHES)
    found = []
    for rows in (4, 5, 6):
        stepper.begin(rows)
        found.append(stepper.caches()["past_value_1"])
    assert all(np.shares_memory(found[0], other) for other in found[1:])
    assert len({cache.ctypes.data for cache in found}) == 1


def test_each_position_is_timed_once(path: str) -> None:
    handlers = make_handlers()
    arguments = {"path": path, "threads": 1, "caches": CACHES}
    request = {"factory": "benchmarks.dynamic.steps:OrtSteps", "arguments": arguments}
    answer = handlers["load"](Message("load", request))
    assert answer.kind == "loaded" and answer.fields["version"] == OrtSteps.version
    for start, stop in ((0, 5), (5, 9), (2, 4)):
        ask = {"start": start, "stop": stop, "untimed_s": 0.001}
        taken: Any = handlers["steps"](Message("steps", ask)).fields["steps_ns"]
        assert len(taken) == stop - start and min(taken) > 0
    failed = handlers["load"](Message("load", {**request, "factory": "tests.nowhere:x"}))
    assert failed.kind == "failed" and "ModuleNotFoundError" in str(failed.fields["message"])


def test_first_calls_are_first_and_follow_one_at_the_first_size(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Session] = []

    def load(path: str) -> Session:
        opened.append(Session(path))
        return opened[-1]

    monkeypatch.setattr(steps, "load", load)
    pasts = (3, 7, 0, 11)
    sizes = [shapes_at(Path(path), "past", past) for past in pasts]
    found = first_calls(path, sizes=sizes, threads=1, seed=0, repeats=2)
    assert len(found) == 3 and all(first > 0 and later > 0 for first, later in found)
    other, model = opened
    assert [call["past_key_0"][2] for call in other.calls] == [*pasts]
    called = [call["past_key_0"][2] for call in model.calls]
    assert called == [3, 7, 3, 7, 3, 7, 3, 0, 3, 0, 3, 0, 3, 11, 3, 11, 3, 11]
