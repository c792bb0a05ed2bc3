"""What is recorded of the zoo: nothing that models are evaluated on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ansorpy.api.request import Request
from ansorpy.cost.learner import samples_of
from ansorpy.cost.pretrained import shipped_file
from ansorpy.cost.programs import Programs
from ansorpy.cost.saved import SavedModel
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.program_dataset import MeasuredTask, read_dataset
from benchmarks.dataset import __main__ as command
from benchmarks.dataset import zoo
from benchmarks.spaces import rank
from benchmarks.spaces.catalogue import plan_named
from benchmarks.zoo.suite import ALL, Entry
from tests.datasets import record_by_formula
from tests.search.tasks import dense_relu, matmul

RECORDED = command.published_file("any").parent


@pytest.fixture
def operators_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operators are evaluated on: the networks take seconds to read."""
    monkeypatch.setattr(zoo, "EVALUATED", ())
    zoo.held_out.cache_clear()


@pytest.fixture(scope="module", params=sorted(RECORDED.glob("*.npz")), ids=lambda path: path.stem)
def published(request: pytest.FixtureRequest) -> tuple[Path, list[MeasuredTask]]:
    """A file and what is in it, which takes seconds to read."""
    return request.param, list(read_dataset(request.param).tasks.values())


@pytest.mark.usefixtures("operators_alone")
def test_published_programs_can_be_learned_from_and_none_is_held_out(
    published: tuple[Path, list[MeasuredTask]],
) -> None:
    _, measured = published
    assert not {structural_hash(each.task.dag) for each in measured} & zoo.held_out()
    for number in np.random.default_rng(0).permutation(len(measured))[:4]:
        task = measured[number].task
        for sketch in measured[number].sketches:
            samples = samples_of(task, Programs(sketch.space(), sketch.table), sketch.seconds)
            assert np.isfinite(samples.prior_s).all()


def test_the_model_that_ships_was_trained_on_what_is_published(
    published: tuple[Path, list[MeasuredTask]],
) -> None:
    path, measured = published
    [family] = {each.task.target.family for each in measured}
    assert path == command.published_file(family)
    model = SavedModel.read(shipped_file(family))
    assert (model.family, model.tasks, model.programs) == (
        family, len(measured), sum(map(len, measured)),
    )  # fmt: skip


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


@pytest.fixture
def small_zoo(monkeypatch: pytest.MonkeyPatch, operators_alone: None) -> None:
    """Two operators that may be recorded and one that may not, timed by a formula."""
    space = plan_named("softmax")

    def two(_: object) -> Iterator[tuple[str, Task]]:
        own = matmul(24, 40, 36)
        yield "net", Task(space.case.dag, own.target, own.threads)
        yield "net", own

    record_by_formula(monkeypatch)
    monkeypatch.setattr(command, "zoo", two)
    monkeypatch.setattr(command, "exported", lambda _: iter([("other", dense_relu(17, 40, 20))]))


@pytest.mark.usefixtures("small_zoo")
def test_the_command_records_what_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.npz"
    assert command.main(["-o", str(path), "--random", "0", "--programs", "6"]) == 0
    assert f"{path}: 12 programs of 2 tasks" in capsys.readouterr().out
    assert len(read_dataset(path)) == 12
    assert command.main(["-o", str(tmp_path / "no" / "d.npz")]) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.usefixtures("small_zoo")
def test_a_model_of_all_programs_takes_the_place_of_the_one_that_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "published_file", lambda _: tmp_path / "d.npz")
    monkeypatch.setattr(command, "shipped_file", lambda _: tmp_path / "m.txt")
    monkeypatch.setattr(rank, "POINTS", 16)
    assert command.main(["--random", "0", "--programs", "32"]) == 0
    model = SavedModel.read(tmp_path / "m.txt")
    assert (model.tasks, model.programs) == (2, len(read_dataset(tmp_path / "d.npz")))
    assert "trained" in capsys.readouterr().out
