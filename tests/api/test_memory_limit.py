"""The constants of a network stay in bounds, and as little time as possible is given up for it."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from ansorpy.api import memory_limit
from ansorpy.api.memory_limit import ProgramOption, Room, choose_within, fastest_within, room_of
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.api.tuner import Chosen, Tuner, open_tuner
from ansorpy.errors import AnsorpyError, NoValidProgram, UsageError
from ansorpy.ir.loops import Role
from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from tests.graph.nets import Net
from tests.measure.raw import execute


def option(seconds: float, size: int, workspace: int = 0) -> ProgramOption:
    def make() -> Chosen:
        raise AssertionError("not asked for")

    return ProgramOption(seconds, size, make, workspace)


def test_the_fastest_are_taken_while_they_fit() -> None:
    options = [[option(1.0, 80), option(2.0, 20)], [option(3.0, 20)]]
    assert fastest_within(options, Room(100)) == [0, 0]
    assert fastest_within(options, Room(99)) == [1, 0]
    assert fastest_within(options, Room(5)) == [1, 0], "the smallest, though it does not fit"


def test_who_loses_least_for_a_byte_gives_way() -> None:
    options = [[option(1.0, 100), option(1.5, 50)], [option(1.0, 100), option(1.1, 50)]]
    assert fastest_within(options, Room(150)) == [0, 1]
    assert fastest_within(options, Room(100)) == [1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_it_fits_where_anything_does_and_is_not_far_from_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = [
        [option(float(s), int(b)) for s, b in zip(rng.uniform(1, 3, n), rng.integers(0, 50, n),
                                              strict=True)]
        for n in rng.integers(1, 5, 4)
    ]  # fmt: skip

    def cost(taken: tuple[int, ...]) -> tuple[float, int]:
        of = [options[task][at] for task, at in enumerate(taken)]
        return sum(w.seconds for w in of), sum(w.bytes for w in of)

    every = [cost(taken) for taken in itertools.product(*(range(len(of)) for of in options))]
    most = int(rng.integers(min(size for _, size in every), 300))
    seconds, size = cost(tuple(fastest_within(options, Room(most))))
    assert size <= most
    assert seconds <= 1.6 * min(s for s, b in every if b <= most)


def test_the_workspace_that_all_calls_share_counts_once() -> None:
    options = [
        [option(1.0, 10, 50), option(2.0, 10, 20)],
        [option(1.0, 10, 40)],
        [option(1.0, 10, 5)],
    ]
    assert fastest_within(options, Room(1000, 80)) == [0, 0, 0]
    assert fastest_within(options, Room(1000, 79)) == [1, 0, 0]
    assert fastest_within(options, Room(1000, 60)) == [1, 0, 0], "the smallest there is"
    tie = [[option(1.0, 10, 50), option(2.0, 15, 20)], [option(1.0, 10, 50), option(2.0, 15, 20)]]
    assert fastest_within(tie, Room(1000, 60)) == [1, 1], "one alone would save nothing"
    assert fastest_within(tie, Room(20, 60)) == [1, 1], "the smallest, though it fits not"


@pytest.mark.parametrize("seed", range(20))
def test_constants_and_workspace_fit_where_anything_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = [
        [option(float(rng.uniform(1, 3)), int(rng.integers(50)), int(rng.integers(80)))
         for _ in range(int(n))]
        for n in rng.integers(1, 5, 4)
    ]  # fmt: skip

    def cost(taken: tuple[int, ...]) -> tuple[float, int, int]:
        of = [options[task][at] for task, at in enumerate(taken)]
        size, scratch = sum(w.bytes for w in of), max(w.workspace for w in of)
        return sum(w.seconds for w in of), size, scratch

    every = [cost(taken) for taken in itertools.product(*(range(len(of)) for of in options))]
    smallest = min(size + scratch for _, size, scratch in every)
    room = Room(10_000, int(rng.integers(smallest, 400)))
    seconds, size, scratch = cost(tuple(fastest_within(options, room)))
    assert room.holds(size, scratch)
    assert seconds <= 1.6 * min(s for s, *b in every if room.holds(*b))


def project(request: Request) -> Project:
    net = Net(x=(1, 16, 12, 12))
    y = net.relu(net.conv("x", 16, 16, 3))
    return open_project(net.model(net.op("GlobalAveragePool", y)), request)


def constants(programs: list[Chosen], of: Project) -> int:
    packs = [of.packs[task.key] for task in of.tasks]
    sizes = [
        sum(math.prod(s.shape) * s.dtype.bytes for s in program.built.run_params
            if s.role is Role.CONSTANT)
        for program in programs
    ]  # fmt: skip
    return round(sum(n * size for n, size in zip(packs, sizes, strict=True)))


def record(tuner: Tuner, of: Project) -> None:
    """Make Winograd's programs the fastest of the convolutions, and direct ones the others."""
    for task in of.tasks:
        sampler = SketchSampler(task)
        for number, pair in enumerate(sampler.pairs):
            if pair.definition.startswith("winograd(4x4)"):
                state = _some(sampler, number)
                made = tuner.database.start(task, state)
                tuner.database.complete(made, MeasureResult(TrialKind.OK, (1e-6,)))
                break
        made = tuner.database.start(task, State.initial(task.dag))
        tuner.database.complete(made, MeasureResult(TrialKind.OK, (1e-3,)))


def _some(sampler: SketchSampler, number: int) -> State:
    rng = np.random.default_rng(0)
    while True:
        sketch = sampler.place(number, rng)
        rows = sketch.sample(64, rng)
        for row in rows[sketch.valid(rows)]:
            try:
                return sketch.resolve(row)
            except AnsorpyError:
                continue


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with these records."""
    request = Request.of(effort="none", threads=1, db=tmp_path_factory.mktemp("limit") / "t.db")
    with open_tuner(request) as tuner:
        record(tuner, project(request))
        return Path(tuner.database.path)


@pytest.fixture
def asked(recorded: Path, tmp_path: Path) -> Request:
    """For programs that are not tuned, from records of the test's own."""
    return Request.of(effort="none", threads=1, db=shutil.copy(recorded, tmp_path / "t.db"))


def test_recorded_programs_of_other_definitions_take_over(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = project(asked)
    with open_tuner(asked) as tuner:
        fast = choose_within(tuner, net)
        assert constants(fast, net) > 3 * net.constant_bytes
        monkeypatch.setattr(memory_limit, "SLACK", 0)
        small = choose_within(tuner, net)
    assert constants(small, net) <= room_of(net).constants == 2 * net.constant_bytes
    assert [p.task for p in small] == list(net.tasks)
    assert sum(p.median_s or 0.0 for p in small) > sum(p.median_s or 0.0 for p in fast)


def test_where_nothing_else_is_recorded_the_definition_itself_is_predicted(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = project(asked)
    with open_tuner(asked) as tuner:
        execute(tuner.database.path, "DELETE FROM results WHERE median_s > 1e-4")
        monkeypatch.setattr(memory_limit, "SLACK", 0)
        found = choose_within(tuner, net)
        assert constants(found, net) <= room_of(net).constants
        monkeypatch.setattr(memory_limit, "room_of", lambda project: Room(10, 10))
        refusal = r"(?s)the smallest programs found take .*iB.*allow 1 MiB or more with --memory"
        with pytest.raises(UsageError, match=refusal):
            choose_within(tuner, net.fit(net.memory_bytes))


def test_what_was_predicted_beside_the_fastest_is_recorded(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = project(asked)
    monkeypatch.setattr(memory_limit, "SLACK", 0)
    with open_tuner(asked) as tuner:
        execute(tuner.database.path, "DELETE FROM results WHERE median_s > 1e-4")
        found = choose_within(tuner, net)
        spent = [_recorded(tuner, task) for task in net.tasks]
    assert sum(spent) > len(net.tasks), "the direct programs are recorded, too"
    with open_tuner(asked) as tuner:
        monkeypatch.setattr(tuner.runner, "measure", None)
        monkeypatch.setattr(tuner, "predicted_directly", None)
        again = choose_within(tuner, net)
        assert [_recorded(tuner, task) for task in net.tasks] == spent
    assert [p.built.digest for p in again] == [p.built.digest for p in found]


def _recorded(tuner: Tuner, task: Task) -> int:
    """Number of programs of *task* that were timed or checked."""
    return tuner.database.trials(task.key) + len(tuner.database.checked(task.key))


def test_a_definition_without_a_correct_program_is_no_way(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = project(asked)

    def fails(self: Tuner, task: Task) -> Chosen:
        raise NoValidProgram(f"{task.name}: no program is correct")

    monkeypatch.setattr(memory_limit, "SLACK", 0)
    monkeypatch.setattr(Tuner, "predicted_directly", fails)
    with open_tuner(asked) as tuner:
        fast = tuner.choose(net.tasks)
        execute(tuner.database.path, "DELETE FROM results WHERE median_s > 1e-4")
        found = choose_within(tuner, net)
    convolutions = [(a, b) for a, b in zip(found, fast, strict=True) if "conv" in a.task.name]
    assert convolutions and all(a.median_s == b.median_s == 1e-6 for a, b in convolutions)


def test_the_memory_allowed_is_a_bound_too() -> None:
    net = project(Request.of(effort="none", threads=1))
    arena, given = net.network.arena.bytes, net.constant_bytes
    assert room_of(net) == Room(2 * given + (32 << 20))
    assert room_of(net.fit(arena + given + 5)) == Room(given + 5, given + 5)
    most = 2 * given + (32 << 20)
    assert room_of(net.fit(1 << 40)) == Room(most, (1 << 40) - arena)


def test_memory_that_only_the_workspace_exceeds_chooses_smaller_programs(asked: Request) -> None:
    """Winograd keeps transformed tiles; what is told to fit must fit as the footprint says it."""
    net = project(asked)
    with open_tuner(asked) as tuner:
        fast = choose_within(tuner, net.fit(1 << 40))
        peak = _peak(net, fast)
        small = choose_within(tuner, net.fit(peak - 1))
        assert _peak(net, small) < peak
        assert [p.built.digest for p in choose_within(tuner, net.fit(peak))] == [
            p.built.digest for p in fast
        ]
        least = _peak(net, small)
        with pytest.raises(UsageError, match="of packed constants and workspace"):
            choose_within(tuner, net.fit(net.memory_bytes))
    assert least > net.memory_bytes


def _peak(net: Project, programs: list[Chosen]) -> int:
    """What `--memory` bounds, as far as it is known before the code is linked."""
    scratch = max(p.built.run.workspace_bytes(1) for p in programs)
    return net.network.arena.bytes + constants(programs, net) + scratch
