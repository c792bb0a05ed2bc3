"""What the run worker answers is checked before it counts: it may have been hurt by a candidate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from ansorpy.errors import VerificationFailed
from ansorpy.measure.protocol import Message
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run_client import RunClient
from ansorpy.measure.timing import TimingPolicy
from tests.measure.definitions import task_of
from tests.measure.planted import N, doubling, planted

TASK = task_of(doubling())
MEASURED: dict[str, object] = {
    "kind": "ok", "reason": "", "seconds": [1e-3, 2e-3], "max_error": 0.0, "run_s": 1.0,
    "check_s": 0.5,
}  # fmt: skip


@dataclass
class Liar:
    """A worker that opens every task and answers the rest as told."""

    answers: Mapping[str, Message]
    is_alive: bool = True
    generation: int = 1
    opened: Mapping[str, object] = field(default_factory=dict)

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Message:
        if message.kind == "open":
            self.opened = message.fields
        return self.answers.get(message.kind, Message("opened"))

    def kill(self) -> None:
        self.is_alive = False


def client_of(**answers: Message) -> RunClient:
    """A client whose worker gives *answers*, by kind; the reference is right unless given."""
    client = RunClient(
        (0,), seed=0, policy=TimingPolicy(), check_points=0, run_timeout_s=1.0,
        reference_timeout_s=1.0,
    )  # fmt: skip
    reference = Message("reference", {}, (bytes(4 * N),))
    client.worker = Liar({"reference": reference, **answers})  # type: ignore[assignment]
    return client


def opened(**answers: Message) -> RunClient:
    client = client_of(**answers)
    client.make_reference(TASK, planted("good"))
    return client


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": [0.0]},
        {"seconds": [-1e-3]},
        {"seconds": [1e-3, math.nan]},
        {"seconds": [math.inf]},
        {"seconds": []},
        {"kind": "slow", "seconds": []},
        {"kind": "fast"},
        {"max_error": math.nan},
        {"max_error": -1.0},
        {"run_s": math.inf},
        {"check_s": math.nan},
        {"more": 1},
    ],
)
def test_a_measurement_that_cannot_be_is_a_crash(wrong):
    client = opened(measure=Message("measured", {**MEASURED, **wrong}))
    result = client.measure(TASK, planted("good"), None)
    assert result.kind is TrialKind.CRASH and not result.seconds
    assert "the run worker answered junk" in result.reason


def test_a_measurement_that_can_be_is_taken():
    result = opened(measure=Message("measured", MEASURED)).measure(TASK, planted("good"), None)
    assert result.ok and result.seconds == (1e-3, 2e-3) and result.run_s == 1.0
    wrong = {**MEASURED, "kind": "wrong_result", "seconds": [], "max_error": None}
    result = opened(measure=Message("measured", wrong)).measure(TASK, planted("good"), None)
    assert result.kind is TrialKind.WRONG_RESULT and result.max_error == math.inf


@pytest.mark.parametrize(
    "seconds",
    [
        [[1e-3], [0.0]],
        [[1e-3], [-1.0]],
        [[1e-3], [math.nan]],
        [[math.inf], [1e-3]],
        [[1e-3], []],
        [[1e-3]],
        [[1e-3]] * 3,
        [1e-3, 1e-3],
        "fast",
        None,
    ],
)
def test_turns_that_cannot_be_are_crashes(seconds):
    client = opened(retime=Message("retimed", {"seconds": seconds}))
    results = client.retime(TASK, [planted("good"), planted("good too")], 1)
    assert [result.kind for result in results] == [TrialKind.CRASH] * 2
    assert all("the run worker answered junk" in result.reason for result in results)


def test_turns_that_can_be_are_taken_in_order():
    client = opened(retime=Message("retimed", {"seconds": [[1e-3, 2e-3], [3e-3]]}))
    good, other = client.retime(TASK, [planted("good"), planted("good too")], 1)
    assert (good.seconds, other.seconds) == ((1e-3, 2e-3), (3e-3,))
    assert good.object_digest == planted("good").digest != other.object_digest
    client = opened(retime=Message("error", {"text": "no room"}))
    [failed] = client.retime(TASK, [planted("good")], 1)
    assert (failed.kind, failed.reason) == (TrialKind.RUN_ERROR, "no room")


def test_the_worker_hears_what_is_touched_between_two_calls() -> None:
    client = opened()
    client.make_reference(replace(TASK, between_bytes=1 << 22), planted("good"))
    assert client.worker.opened["between_bytes"] == 1 << 22  # type: ignore[attr-defined]


@pytest.mark.parametrize("blobs", [(), (b"",), (bytes(4 * N), b""), (bytes(4 * N - 1),)])
def test_a_reference_of_another_size_is_none(blobs):
    client = client_of(reference=Message("reference", {}, blobs))
    with pytest.raises(VerificationFailed, match="cannot be made"):
        client.make_reference(TASK, planted("good"))
    assert not client.has_reference(TASK)
