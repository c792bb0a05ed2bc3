"""What travels between driver and nodes comes back as it was, or is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import pytest

from ansorpy.errors import VerificationFailed
from ansorpy.measure.fleet.base import NodeUnfit
from ansorpy.measure.fleet.node import options_from_json, options_to_json
from ansorpy.measure.fleet.wire import (
    Work,
    read_answer,
    read_hello,
    read_results,
    read_work,
    write_answer,
    write_failure,
    write_hello,
    write_work,
)
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.workers.protocol import ProtocolError
from ansorpy.schedule.steps.records import steps_to_json
from ansorpy.version import __version__
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.planted import planted

RESULT = MeasureResult(TrialKind.OK, (1e-3, 2e-3), "", 0.5, 0.25, 1e-6, "abc")


def changed(message, **fields):
    """*message* with other fields."""
    return json.dumps({**json.loads(message), **fields}).encode()


@pytest.mark.parametrize("within_s", [math.inf, 0.5])
def test_work_keeps_its_task_its_definitions_and_its_schedules(within_s):
    dag, other = matmul(24), matmul(24, constant=True)
    task = task_of(dag, 2, precision="strict", reuse_distance_bytes=1 << 27)
    states = [tiled(dag, 2), tiled(other, 3), tiled(dag, 4), tiled(other)]
    got = read_work(write_work(Work(task, states, 1e-3, within_s=within_s)))
    assert got.within_s == within_s
    assert (got.task.key, got.task.name, got.task.target) == (task.key, task.name, task.target)
    assert got.incumbent_s == 1e-3
    assert [steps_to_json(s.history) for s in got.states] == [
        steps_to_json(s.history) for s in states
    ]
    assert got.states[0].definition is got.task.dag
    assert got.states[1].definition is got.states[3].definition
    assert [s.definition.args[1].constant for s in got.states] == [False, True, False, True]


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        MeasureResult(TrialKind.WRONG_RESULT, reason="never written", max_error=math.inf),
        MeasureResult(TrialKind.SLOW, (1.0,), "stopped after one run"),
    ],
)
def test_answers_come_back_with_their_code(result):
    alone, both = planted("good"), replace(planted("good"), bind=planted("slow").run)
    found = [result, both, alone]
    assert read_answer(write_answer(found), 3) == found
    assert read_results(write_answer([result]), 1) == [result]
    with pytest.raises(NodeUnfit, match="with code where it was to run it"):
        read_results(write_answer(found), 3)


@pytest.mark.parametrize(
    "change",
    [
        {"results": [{"kind": "ok"}]},
        {"results": []},
        {"results": [None]},
        {"results": [{"run": {}, "run_params": []}]},
        {"more": 1},
    ],
)
def test_other_answers_are_refused(change):
    with pytest.raises(NodeUnfit, match="not an answer|0 results for 1"):
        read_answer(changed(write_answer([RESULT]), **change), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": [-1.0]},
        {"seconds": [math.nan]},
        {"seconds": [math.inf]},
        {"seconds": []},
        {"max_error": math.nan},
        {"build_s": -1.0},
        {"kind": "fast"},
        {"reason": 3},
        {"more": 1},
    ],
)
def test_results_no_runner_gives_are_refused(wrong):
    message = write_answer([RESULT])
    [result] = json.loads(message)["results"]
    with pytest.raises(NodeUnfit, match="not an answer"):
        read_answer(changed(message, results=[{**result, **wrong}]), 1)


def test_a_node_says_why_it_cannot_work():
    with pytest.raises(NodeUnfit, match="MemoryError"):
        read_answer(write_failure(MemoryError()), 1)
    with pytest.raises(VerificationFailed, match="C is wrong"):
        read_answer(write_failure(VerificationFailed("C is wrong")), 1)


def test_a_node_of_another_version_is_refused():
    hello = write_hello(3)
    assert read_hello(hello) == 3
    with pytest.raises(NodeUnfit, match=f"it runs ansorpy 0.0.1, the driver {__version__}"):
        read_hello(changed(hello, version="0.0.1"))
    for other in (b"", b"\x80\x04K\x01.", changed(hello, builders=0), write_answer([])):
        with pytest.raises(NodeUnfit, match="not a greeting"):
            read_hello(other)


def test_code_travels_with_its_candidate():
    dag, built = matmul(), planted("good")
    assert read_work(write_work(Work(task_of(dag), [tiled(dag, 2)], built=built))).built == built


def test_work_that_does_not_fit_together_is_refused():
    dag = matmul()
    message = write_work(Work(task_of(dag), [tiled(dag, 2)]))
    steps = json.loads(message)["candidates"][0]["steps"]
    change = partial(changed, message)
    for broken in (
        change(definitions=[]),
        change(definitions=[steps]),
        change(candidates=[{"base": 1, "steps": steps}]),
        change(candidates=[{"base": 0, "steps": steps[:-1]}]),
        change(threads=0),
        change(built={"run": 1}),
        write_hello(1),
        message[:-1],
        b"\x80\x04K\x01.",
    ):
        with pytest.raises(ProtocolError, match="not work"):
            read_work(broken)


def test_options_reach_the_node(tmp_path):
    options = MeasureOptions(
        seed=3, builders=2, cores=(1,), policy=TimingPolicy(total_s=0.5), lock_folder=tmp_path
    )
    assert options_from_json(options_to_json(options)) == options
    with pytest.raises(ValueError):
        options_from_json(b"{")
