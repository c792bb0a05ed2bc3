"""What travels between driver and nodes comes back as it was, or is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ansorpy.measure.fleet.node import options_from_json, options_to_json
from ansorpy.measure.fleet.wire import (
    Work,
    read_answer,
    read_hello,
    read_work,
    single,
    write_answer,
    write_work,
)
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.workers.protocol import Message, ProtocolError, encode
from ansorpy.schedule.steps.records import steps_to_json
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.planted import planted

RESULT = MeasureResult(TrialKind.OK, (1e-3, 2e-3), "", 0.5, 0.25, 1e-6, "abc")


@pytest.mark.parametrize("within_s", [math.inf, 0.5])
def test_work_keeps_its_task_its_definitions_and_its_schedules(within_s):
    dag, other = matmul(24), matmul(24, constant=True)
    task = task_of(dag, 2, precision="strict", between_bytes=1 << 27)
    states = [tiled(dag, 2), tiled(other, 3), tiled(dag, 4), tiled(other)]
    sent = encode(write_work("measure", Work(task, states, 1e-3, 5, within_s=within_s)))
    got = read_work(single(sent))
    assert got.within_s == within_s
    assert (got.task.key, got.task.name, got.task.target) == (task.key, task.name, task.target)
    assert (got.incumbent_s, got.rounds) == (1e-3, 5)
    assert [steps_to_json(s.history) for s in got.states] == [
        steps_to_json(s.history) for s in states
    ]
    assert got.states[0].base is got.task.dag and got.states[1].base is got.states[3].base
    assert [s.base.args[1].constant for s in got.states] == [False, True, False, True]


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        MeasureResult(TrialKind.WRONG_RESULT, reason="never written", max_error=math.inf),
        MeasureResult(TrialKind.SLOW, (1.0,), "stopped after one run"),
        None,
    ],
)
def test_answers_come_back_with_their_code(result):
    alone, both = planted("good"), replace(planted("good"), bind=planted("slow").run)
    found = [(result, both), (None, None), (result, None), (None, alone)]
    assert read_answer(single(encode(write_answer(found))), 4) == found


@pytest.mark.parametrize(
    "change",
    [
        {"results": [{"kind": "ok"}]},
        {"results": []},
        {"results": [None, None]},
        {"codes": [{"header": {"run": 1}, "blobs": 1}]},
        {"codes": []},
        {"more": 1},
    ],
)
def test_other_answers_are_refused(change):
    message = write_answer([(RESULT, None)])
    with pytest.raises(ProtocolError):
        read_answer(replace(message, fields={**message.fields, **change}), 1)
    with pytest.raises(ProtocolError, match="too many"):
        read_answer(replace(message, blobs=(b"x",)), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": [-1.0]},
        {"seconds": [math.nan]},
        {"seconds": []},
        {"max_error": math.inf},
        {"kind": "fast"},
        {"reason": 3},
    ],
)
def test_results_no_runner_gives_are_refused(wrong):
    message = write_answer([(RESULT, None)])
    results = message.fields["results"]
    assert isinstance(results, list)
    fields = {**message.fields, "results": [{**results[0], **wrong}]}
    with pytest.raises(ProtocolError):
        read_answer(single(encode(replace(message, fields=fields))), 1)


def test_code_travels_with_its_candidate():
    dag, built = matmul(), planted("good")
    sent = write_work("measure", Work(task_of(dag), [tiled(dag, 2)], built=built))
    assert read_work(sent).built == built


def test_work_that_does_not_fit_together_is_refused():
    dag = matmul()
    message = write_work("build", Work(task_of(dag), [tiled(dag, 2)]))
    for broken in (
        replace(message, blobs=message.blobs[:1]),
        replace(message, blobs=(message.blobs[1], message.blobs[0])),
        replace(message, fields={**message.fields, "bases": [1]}),
        replace(message, fields={**message.fields, "threads": 0}),
        Message("build"),
    ):
        with pytest.raises(ProtocolError, match="not work"):
            read_work(broken)
    with pytest.raises(ProtocolError, match="greeting"):
        read_hello(message)


@pytest.mark.parametrize("frame", [b"", b"answ", encode(Message("x")) * 2, b"\x80\x04K\x01."])
def test_a_frame_is_one_message(frame):
    with pytest.raises(ProtocolError):
        single(frame)


def test_options_reach_the_node(tmp_path):
    options = MeasureOptions(
        seed=3, builders=2, cores=(1,), policy=TimingPolicy(total_s=0.5), lock_folder=tmp_path
    )
    assert options_from_json(options_to_json(options)) == options
    with pytest.raises(ValueError):
        options_from_json(b"{")
