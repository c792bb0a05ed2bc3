"""What is recorded of the zoo: nothing that models are evaluated on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from ansorpy.api.request import Request
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import read_dataset
from benchmarks.dataset import __main__ as command
from benchmarks.dataset import zoo
from benchmarks.spaces.catalogue import plan_named
from benchmarks.zoo.suite import ALL, Entry
from tests.datasets import record_by_formula
from tests.search.tasks import dense_relu, matmul


@pytest.fixture
def operators_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operators are evaluated on: the networks take seconds to read."""
    monkeypatch.setattr(zoo, "EVALUATED", ())
    zoo.held_out.cache_clear()


@pytest.mark.usefixtures("operators_alone")
def test_recorded_spaces_are_held_out() -> None:
    assert structural_hash(plan_named("winograd").case.dag) in zoo.held_out()
    assert structural_hash(matmul(24, 40, 36).dag) not in zoo.held_out()


def test_evaluated_networks_exist_and_are_not_in_the_zoo() -> None:
    assert set(zoo.EVALUATED) <= {Entry.parse(name).name for name in ALL}
    entries = zoo.entries()
    assert not {entry.name for entry in entries} & set(zoo.EVALUATED)
    labels = {entry.label for entry in entries}
    assert {"vgg19", "squeezenet", "squeezenet.b4", "vit_tiny"} <= labels


def test_stored_graphs_have_tasks_at_each_size() -> None:
    found = list(islice(zoo.exported(Request.of(effort="none")), 3))
    assert len({task.key for _, task in found}) == 3


@pytest.mark.usefixtures("operators_alone")
def test_the_command_records_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    space = plan_named("softmax")

    def two(_: object) -> Iterator[tuple[str, Task]]:
        own = matmul(24, 40, 36)
        yield "net", Task(space.case.dag, own.target, own.threads)
        yield "net", own

    record_by_formula(monkeypatch)
    monkeypatch.setattr(command, "zoo", two)
    monkeypatch.setattr(command, "exported", lambda _: iter([("other", dense_relu(17, 40, 20))]))
    path = tmp_path / "d.npz"
    assert command.main(["-o", str(path), "--random", "0", "--programs", "6"]) == 0
    assert f"{path}: 12 programs of 2 tasks" in capsys.readouterr().out
    assert len(read_dataset(path)) == 12
    assert command.main(["-o", str(tmp_path / "no" / "d.npz")]) == 2
    assert "cannot write" in capsys.readouterr().err
