"""Predictions are the same in any process, and a worker's failure is reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ansorpy.errors import AnsorpyError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.prove import Verdict
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.proofs.prover import LIMIT_S
from ansorpy.measure.result import TrialKind
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.state import State
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.target import Target
from ansorpy.tasks import predict_many
from ansorpy.tasks.predict import predicted_best
from ansorpy.tasks.predict_build import Making, make
from ansorpy.tasks.predict_handlers import make_handlers, predict_message, predicted
from ansorpy.tasks.predict_many import predicted_of_all
from tests.search.tasks import dense_relu, matmul, sampler, scale

OPTIONS = PredictOptions(sketches=4, population=64, generations=2, seed=3)
TASKS = [matmul(31, 48, 17), dense_relu(16, 32, 64), scale(37)]


def _histories(task: Task) -> list[str]:
    source = sampler(task)
    return [str(state.history) for state in predicted_best(task, source, options=OPTIONS)]


def test_workers_predict_what_this_process_does() -> None:
    found = {number: states for number, states, _ in predicted_of_all(
        TASKS, options=OPTIONS, processes=2
    )}  # fmt: skip
    for number, task in enumerate(TASKS):
        assert [str(state.history) for state in found[number]] == _histories(task)
        assert found[number][-1].definition.outputs[0].shape == task.dag.outputs[0].shape


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_program_is_made_where_it_was_predicted(processes: int) -> None:
    found = list(predicted_of_all(
        TASKS, options=OPTIONS, processes=processes, making=Making.CHECKED_CODE
    ))  # fmt: skip
    for number, states, made in found:
        again = make(TASKS[number], states[0], Making.CODE, 0)
        assert made.built is not None and again.built is not None and again.checked is None
        assert made.built.digest == again.built.digest
        assert made.proof is not None and made.proof.verdict is Verdict.PROVED
        assert made.checked is not None and made.checked.kind is TrialKind.CHECKED
        assert made.checked.object_digest == made.built.digest
    assert sorted(number for number, _, _ in found) == [0, 1, 2]


@pytest.mark.parametrize("processes", [1, 2])
def test_known_programs_are_made_and_not_predicted_again(processes: int) -> None:
    known = [State.initial(TASKS[1].dag)]
    found = {number: (states, made) for number, states, made in predicted_of_all(
        TASKS, options=OPTIONS, processes=processes, making=Making.CODE, known={1: known}
    )}  # fmt: skip
    states, made = found[1]
    assert [str(state.history) for state in states] == [""]
    assert made.built is not None and made.checked is None
    assert len(found[0][0]) > 1


def _spread() -> Task:
    a = placeholder((7,), name="A")
    b = compute((35,), lambda i: a[i // 5] + 1.0, name="B")
    return Task(ComputeDAG.of([a, b]), TASKS[0].target, 1)


def test_programs_with_quotients_are_proved_and_checked_after_all_others() -> None:
    tasks = [_spread(), *TASKS[1:]]
    known = {0: [State.initial(tasks[0].dag)]}
    *_, (number, _, made) = predicted_of_all(
        tasks, options=OPTIONS, processes=2, making=Making.CHECKED_CODE, known=known
    )
    assert number == 0 and made.built is not None
    assert made.proof is not None and made.proof.verdict is Verdict.PROVED
    assert made.checked is not None and made.checked.object_digest == made.built.digest


def test_a_proof_that_takes_too_long_is_left_to_the_prover(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[str, float] = {}

    def answers(
        workers: object, messages: Sequence[Message], timeout_s: float
    ) -> Iterator[tuple[int, Message | Failure]]:
        for at, message in enumerate(messages):
            limits[message.kind] = timeout_s
            is_late = message.kind == "finish"
            yield at, Failure("timeout", "late") if is_late else make_handlers()["predict"](message)

    monkeypatch.setattr(predict_many, "ask_all", answers)
    task = _spread()
    [(_, states, made)] = predicted_of_all(
        [task], options=OPTIONS, processes=2, making=Making.CHECKED_CODE,
        known={0: [State.initial(task.dag)]},
    )  # fmt: skip
    assert limits["finish"] == LIMIT_S < limits["predict"]
    assert len(states) == 1
    assert made.built is not None and made.proof is None and made.checked is None


@pytest.mark.parametrize(
    "outcome", [Failure("crash", "SIGSEGV"), Message("error", {"text": "no such instruction"})]
)
def test_a_program_that_a_worker_fails_at_is_left_out(
    monkeypatch: pytest.MonkeyPatch, outcome: Message | Failure
) -> None:
    asked: list[str] = []
    mortal = dag_to_json(TASKS[1].dag).encode()

    def answers(
        workers: object, messages: Sequence[Message], timeout_s: float
    ) -> Iterator[tuple[int, Message | Failure]]:
        lengths = [len(message.blobs[0]) for message in messages]
        assert lengths == sorted(lengths, reverse=True)
        for at, message in enumerate(messages):
            asked.append(str(message.fields["making"]))
            dies = message.blobs[0] == mortal and message.fields["making"] == "code"
            yield at, outcome if dies else make_handlers()["predict"](message)

    monkeypatch.setattr(predict_many, "ask_all", answers)
    found = list(predicted_of_all(TASKS, options=OPTIONS, processes=2, making=Making.CODE))
    assert asked == ["code", "code", "code", "nothing"]
    assert {number: made.built is None for number, _, made in found} == {
        0: False,
        1: True,
        2: False,
    }
    left = [str(state.history) for state in found[-1][1]]
    assert left == _histories(TASKS[1])[1:]


def test_the_only_program_stays_even_if_it_kills_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(
        workers: object, messages: Sequence[Message], timeout_s: float
    ) -> Iterator[tuple[int, Message | Failure]]:
        for at, message in enumerate(messages):
            dies = message.fields["making"] == "code"
            yield at, Failure("crash", "SIGSEGV") if dies else make_handlers()["predict"](message)

    monkeypatch.setattr(predict_many, "ask_all", answers)
    [(_, states, made)] = predicted_of_all(
        TASKS[:1], options=OPTIONS, processes=2, making=Making.CODE,
        known={0: [State.initial(TASKS[0].dag)]},
    )  # fmt: skip
    assert len(states) == 1 and made.built is None


def test_a_preset_of_ones_own_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> object:
        raise AssertionError("no worker is needed")

    monkeypatch.setattr(predict_many, "Worker", refuse)
    own = preset_for(TASKS[0].target, "ansor")
    [(number, states, _)] = predicted_of_all(TASKS[:1], preset=own, options=OPTIONS, processes=2)
    assert number == 0 and states


def test_a_request_says_all_that_a_prediction_depends_on() -> None:
    task = Task(TASKS[1].dag, Target.parse("x86-64-v3"), 1, "strict", reuse_distance_bytes=1 << 27)
    answer = make_handlers()["predict"](predict_message(task, "default", OPTIONS))
    assert [str(state.history) for state in predicted(answer)[0]] == _histories(task)


def test_what_a_worker_cannot_do_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        predict_many, "predict_message", lambda *a, **b: Message("predict", {"x": 1})
    )
    with pytest.raises(AnsorpyError, match="no prediction"):
        list(predicted_of_all(TASKS, options=OPTIONS, processes=2))
