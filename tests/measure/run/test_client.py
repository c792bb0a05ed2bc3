"""What the run worker answers is checked before it counts: it may have been hurt by a candidate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import pytest

from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError, VerificationFailed
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.client import RunClient
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.run.undisturbed import CREDIT_S
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure, Reply
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
    asked: list[tuple[Mapping[str, object], float]] = field(default_factory=list)
    """Fields and time limits of all requests."""

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Reply:
        self.asked.append((message.fields, timeout_s))
        if message.kind == "open":
            self.opened = message.fields
        return self.answers.get(message.kind, Message("opened"))

    def kill(self) -> None:
        self.is_alive = False


def client_of(*, in_turns: bool = False, **answers: Message) -> RunClient:
    """A client whose worker gives *answers*, by kind; the reference is right unless given."""
    client = RunClient(
        (0,), seed=0, policy=TimingPolicy(), check_points=0, run_timeout_s=1.0,
        reference_timeout_s=1.0, in_turns=in_turns,
    )  # fmt: skip
    reference = Message("reference", {}, (bytes(4 * N),))
    client.worker = Liar({"reference": reference, **answers})  # type: ignore[assignment]
    return client


def opened(*, in_turns: bool = False, **answers: Message) -> RunClient:
    client = client_of(in_turns=in_turns, **answers)
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


def test_later_candidates_are_timed_beside_the_first_or_a_much_faster_one():
    def told(seconds: float) -> Message:
        return Message("measured", {**MEASURED, "seconds": [seconds]})

    client = opened(in_turns=True)
    worker = cast(Liar, client.worker)
    for seconds in (4e-3, 3e-3, 1e-3, 0.9e-3):
        worker.answers = {"measure": told(seconds)}
        assert client.measure(TASK, planted("good"), None).seconds == (seconds,)
    asked: list[Any] = [fields for fields, _ in worker.asked if "yardstick" in fields]
    beside = [fields["yardstick"] for fields in asked]
    assert [each and each["seconds"] for each in beside] == [None, 4e-3, 4e-3, 1e-3]
    assert [fields["policy"]["fastest"] < 1.0 for fields in asked] == [True, False, False, False]


@dataclass
class Closed(Liar):
    """A worker that fails to open the task a number of times."""

    failures: list[Failure] = field(default_factory=list)
    killed: int = 0

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Reply:
        if message.kind == "open" and self.failures:
            return self.failures.pop()
        return super().request(message, timeout_s, starved_s=starved_s)

    def kill(self) -> None:
        self.killed += 1


@pytest.mark.parametrize("kind", ["timeout", "crash"])
def test_a_worker_that_cannot_open_the_task_is_no_fault_of_the_candidate(
    kind: Literal["timeout", "crash"],
) -> None:
    def client(times: int) -> RunClient:
        made = opened()
        failures = [Failure(kind, "the machine was busy")] * times
        answers = {"measure": Message("measured", MEASURED)}
        answers["retime"] = Message("retimed", {"seconds": [[1e-3]]})
        made.worker = Closed(answers, failures=failures)  # type: ignore[assignment]
        return made

    assert client(1).measure(TASK, planted("good"), None).ok
    [retimed] = client(1).retime(TASK, [planted("good")])
    assert retimed.ok
    with pytest.raises(AnsorpyError, match="cannot prepare test: the machine was busy"):
        client(2).measure(TASK, planted("good"), None)
    with pytest.raises(AnsorpyError, match="cannot prepare test"):
        client(2).retime(TASK, [planted("good")])
    late = client(2)
    with until(0.0):
        assert late.measure(TASK, planted("good"), None).kind is TrialKind.CUT


@dataclass
class Killed(Liar):
    """A worker that the system kills a number of times."""

    times: int = 1

    def request(self, message: Message, timeout_s: float, *, starved_s: float = 0.0) -> Reply:
        if message.kind == "measure" and self.times:
            self.times -= 1
            self.generation += 1
            return Failure("crash", "killed by SIGKILL", was_killed=True)
        return super().request(message, timeout_s, starved_s=starved_s)


@pytest.mark.parametrize(("times", "kind"), [(1, TrialKind.OK), (2, TrialKind.CRASH)])
def test_a_worker_that_the_system_kills_is_asked_once_more(times: int, kind: TrialKind) -> None:
    client = opened()
    worker = Killed({"measure": Message("measured", MEASURED)}, times=times)
    client.worker = worker  # type: ignore[assignment]
    assert client.measure(TASK, planted("good"), None).kind is kind
    openings = [fields for fields, _ in worker.asked if "check_points" in fields]
    assert len(openings) == 2, "each process opens the task"


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
    results = client.retime(TASK, [planted("good"), planted("good too")])
    assert [result.kind for result in results] == [TrialKind.CRASH] * 2
    assert all("the run worker answered junk" in result.reason for result in results)


def test_turns_that_can_be_are_taken_in_order():
    client = opened(retime=Message("retimed", {"seconds": [[1e-3, 2e-3], [3e-3]]}))
    good, other = client.retime(TASK, [planted("good"), planted("good too")])
    assert (good.seconds, other.seconds) == ((1e-3, 2e-3), (3e-3,))
    assert good.object_digest == planted("good").digest != other.object_digest
    client = opened(retime=Message("error", {"text": "no room"}))
    [failed] = client.retime(TASK, [planted("good")])
    assert (failed.kind, failed.reason) == (TrialKind.RUN_ERROR, "no room")


def test_the_worker_hears_how_long_turns_may_take() -> None:
    def within(client: RunClient) -> tuple[float, float]:
        client.retime(TASK, [planted("good"), planted("good too")])
        assert isinstance(client.worker, Liar)
        fields, timeout_s = client.worker.asked[-1]
        return float(str(fields["within_s"])), timeout_s

    client = opened(retime=Message("retimed", {"seconds": [[1e-3], [3e-3]]}))
    within_s, timeout_s = within(client)
    assert timeout_s > 2 * client.run_timeout_s + CREDIT_S  # and what the operands' size allows
    assert within_s == pytest.approx(0.9 * timeout_s)
    with until(time.monotonic() + 1.0):
        within_s, timeout_s = within(client)
    assert 0 < within_s < 0.9 < timeout_s


def test_the_worker_hears_what_is_touched_between_two_calls() -> None:
    client = opened()
    client.make_reference(replace(TASK, reuse_distance_bytes=1 << 22), planted("good"))
    assert client.worker.opened["reuse_distance_bytes"] == 1 << 22  # type: ignore[attr-defined]


def test_magnitudes_are_kept_and_sent_with_the_reference() -> None:
    made = Message("reference", {"magnitudes": [2.5]}, (bytes(4 * N),))
    client = opened(reference=made, measure=Message("measured", MEASURED))
    client.measure(TASK, planted("good"), None)
    assert client.worker.opened["magnitudes"] == [2.5]  # type: ignore[attr-defined]
    assert client.reference(TASK).magnitudes == (2.5,)


@pytest.mark.parametrize("magnitudes", [[-1.0], [math.nan], [1.0, 2.0], "large"])
def test_magnitudes_that_cannot_be_are_no_reference(magnitudes: object) -> None:
    client = client_of(reference=Message("reference", {"magnitudes": magnitudes}, (bytes(4 * N),)))
    with pytest.raises(VerificationFailed, match="cannot be made"):
        client.make_reference(TASK, planted("good"))


@pytest.mark.parametrize("blobs", [(), (b"",), (bytes(4 * N), b""), (bytes(4 * N - 1),)])
def test_a_reference_of_another_size_is_none(blobs):
    client = client_of(reference=Message("reference", {}, blobs))
    with pytest.raises(VerificationFailed, match="cannot be made"):
        client.make_reference(TASK, planted("good"))
    assert not client.has_reference(TASK)
