"""What is recorded of the zoo: nothing that models are evaluated on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansorpy.api import dataset as recording
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import read_dataset
from benchmarks.dataset import __main__ as command
from benchmarks.dataset import zoo
from benchmarks.networks.suite import ALL, Entry
from benchmarks.search.catalogue import plan_named
from tests.datasets import formula_machines
from tests.search.tasks import matmul


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operators are evaluated on: the networks take seconds to read."""
    monkeypatch.setattr(zoo, "EVALUATED", ())
    zoo.held_out.cache_clear()


@pytest.mark.usefixtures("networks")
def test_recorded_spaces_are_held_out() -> None:
    assert structural_hash(plan_named("winograd").case.dag) in zoo.held_out()
    assert structural_hash(matmul(24, 40, 36).dag) not in zoo.held_out()


def test_evaluated_networks_exist_and_are_not_in_the_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = {Entry.parse(name).name for name in ALL}
    assert set(zoo.EVALUATED) - {"bert"} <= suite
    monkeypatch.setattr(Entry, "model", lambda self, seed: None)
    monkeypatch.setattr(zoo, "restored", lambda name: None)
    names = [name for name, _, _ in zoo._networks()]
    assert not any(name.partition(".")[0] in zoo.EVALUATED[:5] for name in names)
    assert {"vgg19", "squeezenet", "squeezenet.b4", "vit_tiny", "swin.dynamo"} <= set(names)


@pytest.mark.usefixtures("networks")
def test_the_command_records_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    space = plan_named("softmax")

    def two(_: object) -> Iterator[tuple[str, Task]]:
        own = matmul(24, 40, 36)
        yield "net", Task(space.case.dag, own.target, own.threads)
        yield "net", own

    monkeypatch.setattr(recording, "open_machines", formula_machines)
    monkeypatch.setattr(command, "zoo", two)
    path = tmp_path / "d.npz"
    assert command.main(["-o", str(path), "--random", "0", "--programs", "6"]) == 0
    assert f"{path}: 6 programs of 1 tasks" in capsys.readouterr().out
    assert len(read_dataset(path)) == 6
    assert command.main(["-o", str(tmp_path / "no" / "d.npz")]) == 2
    assert "cannot write" in capsys.readouterr().err
