"""A node builds and times what it is sent, and says plainly what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from ansorpy.ir.task import Task
from ansorpy.measure.fleet.node import NodeService, options_to_json
from ansorpy.measure.fleet.wire import Work, read_answer, read_hello, single, write_work
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.workers.protocol import Message, encode
from ansorpy.target import Target
from ansorpy.version import __version__
from tests.measure.definitions import matmul, task_of, tiled

DAG = matmul()
TASK = task_of(DAG)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeService]:
    options = MeasureOptions(builders=1, lock_folder=tmp_path_factory.mktemp("locks"))
    service = NodeService(options_to_json(options))
    yield service
    service.close()


def ask(node, kind, *states, task=TASK, built=None):
    return single(node.answer(encode(write_work(kind, Work(task, states, None, 3, built)))))


def test_it_greets(node):
    hello = read_hello(single(node.answer(encode(Message("hello")))))
    assert (hello.version, hello.builders) == (__version__, 1)


def test_what_it_built_is_kept_or_sent_back(node):
    open_state = tiled(DAG).split("C", "j", (None,))[0]
    for kind in ("build", "compile"):
        (result, code), failed = read_answer(ask(node, kind, tiled(DAG, 2), open_state), 2)
        assert result is None and (code is None) == (kind == "build")
        assert failed[0] is not None and failed[0].kind is TrialKind.LOWER_ERROR


def test_it_times_code_that_another_node_built(node):
    [(_, elsewhere)] = read_answer(ask(node, "compile", tiled(DAG, 4)), 1)
    assert elsewhere is not None
    # The schedule is another, so its time can only be that of the code sent along.
    [(result, code)] = read_answer(ask(node, "measure", tiled(DAG, 8), built=elsewhere), 1)
    assert result is not None and result.ok, result
    assert code is not None and code.digest == elsewhere.digest == result.object_digest


def test_finalists_come_back_in_order(node):
    answers = read_answer(ask(node, "retime", tiled(DAG, 2), tiled(DAG, 3)), 2)
    assert [len(r.seconds) for r, _ in answers if r is not None] == [3, 3]


def test_it_says_what_it_is_not(node):
    task = Task(DAG, Target.parse("cortex-a76"), 1)
    answer = ask(node, "measure", tiled(DAG, 2), task=task)
    assert answer.kind == "error"
    assert "cannot time code for cortex-a76" in str(answer.fields["text"])
    [(_, code)] = read_answer(ask(node, "compile", tiled(DAG, 2), task=task), 1)
    assert code is not None, "it may build for others"


def test_what_its_machine_lacks_is_said_and_ends_nothing(node, monkeypatch):
    for error, text in ((OSError(28, "No space left on device"), "No space"), (MemoryError(), "M")):
        with monkeypatch.context() as patch:
            patch.setattr(LocalRunner, "build", Mock(side_effect=error))
            answer = ask(node, "build", tiled(DAG, 2))
        assert answer.kind == "error" and text in str(answer.fields["text"])
    assert ask(node, "build", tiled(DAG, 2)).kind == "answer"


def test_junk_is_answered_with_an_error(node):
    assert single(node.answer(b"junk")).kind == "error"
    assert single(node.answer(encode(Message("measure")))).kind == "error"
