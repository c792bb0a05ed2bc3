"""A node builds and times what it is sent, and says plainly what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import NodeUnfit
from ansorpy.measure.fleet.node import NodeService, options_to_json
from ansorpy.measure.fleet.wire import Work, read_answer, read_hello, read_results, write_work
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.target import Target
from tests.measure.definitions import matmul, task_of, tiled

DAG = matmul()
TASK = task_of(DAG)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeService]:
    folder, policy = tmp_path_factory.mktemp("locks"), TimingPolicy(rounds=3)
    options = MeasureOptions(builders=1, policy=policy, lock_folder=folder)
    service = NodeService(options_to_json(options))
    yield service
    service.close()


def work(*states, task=TASK, built=None):
    return write_work(Work(task, states, built=built))


def test_it_greets(node):
    assert read_hello(node.hello()) == 1


def test_what_it_built_is_sent_back(node):
    open_state = tiled(DAG).split("C", "j", (None,))[0]
    code, failed = read_answer(node.build(work(tiled(DAG, 2), open_state)), 2)
    assert isinstance(code, Built)
    assert isinstance(failed, MeasureResult) and failed.kind is TrialKind.LOWER_ERROR


def test_it_times_code_that_another_node_built(node):
    [elsewhere] = read_answer(node.build(work(tiled(DAG, 4))), 1)
    assert isinstance(elsewhere, Built)
    # The schedule is another, so its time can only be that of the code sent along.
    [result] = read_results(node.measure(work(tiled(DAG, 8), built=elsewhere)), 1)
    assert result.ok and result.object_digest == elsewhere.digest


def test_finalists_come_back_in_order(node):
    results = read_results(node.retime(work(tiled(DAG, 2), tiled(DAG, 3))), 2)
    assert [len(result.seconds) for result in results] == [3, 3]


def test_it_says_what_it_is_not(node):
    task = Task(DAG, Target.parse("cortex-a76"), 1)
    for method in (node.measure, node.retime):
        with pytest.raises(NodeUnfit, match="cannot time code for cortex-a76"):
            read_results(method(work(tiled(DAG, 2), task=task)), 1)
    [code] = read_answer(node.build(work(tiled(DAG, 2), task=task)), 1)
    assert isinstance(code, Built), "it may build for others"


def test_what_its_machine_lacks_is_said_and_ends_nothing(node, monkeypatch):
    for error, text in ((OSError(28, "No space left on device"), "No space"), (MemoryError(), "M")):
        with monkeypatch.context() as patch:
            patch.setattr(LocalRunner, "build", Mock(side_effect=error))
            answer = node.build(work(tiled(DAG, 2)))
        with pytest.raises(NodeUnfit, match=text):
            read_answer(answer, 1)
    assert read_answer(node.build(work(tiled(DAG, 2))), 1)


@pytest.mark.parametrize("junk", [b"junk", b"", b"{}", b"\x80\x04K\x01."])
def test_junk_is_answered_with_an_error(node, junk):
    for method in (node.build, node.measure, node.retime):
        with pytest.raises(NodeUnfit, match="not work for a node"):
            read_answer(method(junk), 1)
