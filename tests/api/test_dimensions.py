"""Kernels that take arrays of every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis.strategies import integers

import ansorpy as ap
from ansorpy.api.sized import program
from ansorpy.api.sized.program import require_equal
from ansorpy.api.sized.task_group import TaskGroup, sizes_between, sizes_for
from ansorpy.api.sized.timer import Timer
from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import NoValidProgram, ScheduleError, UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Extent, dim_extent
from ansorpy.ir.prove import Claim, Finding, Proof
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import TrialKind
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.budget import examples
from tests.codegen.c.compiled import needs_cc
from tests.properties.random_dags import drawn_sizes, random_sized_state
from tests.properties.random_elements import random_values
from tests.rounding import Reference

Rng = np.random.Generator


def product(n: Extent) -> list[ap.Tensor]:
    """Rows of n, with a bias of n * 2 + 1 elements, every other one of which is read."""
    x, w = ap.placeholder((n, 16), name="x"), ap.placeholder((16, 8), name="w", constant=True)
    b = ap.placeholder((n * 2 + 1,), name="b")
    k = ap.reduce_axis(16, name="k")
    y = ap.compute((n, 8), lambda i, j: ap.sum(x[i, k] * w[k, j], axis=k), name="y")
    return [x, w, b, ap.compute((n, 8), lambda i, j: y[i, j] + b[i * 2 + 1], name="z")]


def given_for(n: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    return rng.random((n, 16), np.float32), rng.random((n * 2 + 1,), np.float32)


@pytest.mark.parametrize("target", ["host", pytest.param("c", marks=needs_cc)])
def test_one_kernel_takes_every_size(target: str, rng: Rng) -> None:
    w = rng.random((16, 8), np.float32)
    state, (outer, _) = State.initial(product(ap.dim("n", 0, 50))).split("z", "i", (4,))
    kernel = ap.build(state.parallel("z", [outer]), target=target).bind(w=w)
    for n in (0, 1, 7, 50, 7):
        x, b = given_for(n, rng)
        want = x @ w + b[1::2][:n, None]
        for threads in (1, 2):
            np.testing.assert_allclose(kernel(x, b, threads=threads), want, rtol=1e-5)
        out = np.full((n, 8), np.nan, np.float32)
        kernel.prepare(x, b, out=out)()
        np.testing.assert_allclose(out, want, rtol=1e-5)


@examples(12)
@given(seed=integers(0, 2**32 - 1))
def test_sizes_are_read_off_the_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_sized_state(rng, int(rng.integers(0, 8)), (DType.FLOAT32,), apart=False)
    try:
        kernel = ap.build(state)
    except ScheduleError:
        reject()
    for _ in range(3):
        dag = dag_at(state.definition, drawn_sizes(state.definition.dims, rng))
        reference = Reference(dag, random_values(dag, rng))
        constants = {op.name for op in dag.args if op.constant}
        kernel.bind(**{name: reference.data[name] for name in constants})
        arrays = [reference.data[op.name] for op in dag.args if op.name not in constants]
        found = kernel(*arrays)
        if not reference.reason:
            results = [found] if len(dag.outputs) == 1 else found
            assert max(reference.shares(results, dag)) <= 1


def test_each_part_of_the_sizes_may_have_a_schedule_of_its_own(rng: Rng) -> None:
    few = State.initial(product(ap.dim("n", 0, 7)))
    many, (outer, _) = State.initial(product(ap.dim("n", 8, 50))).split(
        "z", "i", (8,), tail="shift"
    )
    w = rng.random((16, 8), np.float32)
    kernel = ap.build([many.compute_at("y", "z", outer), few]).bind(w=w)
    assert "if n <= 7" in kernel.program
    for n in (0, 7, 8, 50):
        x, b = given_for(n, rng)
        np.testing.assert_allclose(kernel(x, b), x @ w + b[1::2][:n, None], rtol=1e-5)
    with pytest.raises(UsageError, match="n is from 0 to 50"):
        kernel(*given_for(51, rng))


def test_schedules_of_several_definitions_are_refused() -> None:
    one, other = (State.initial(product(ap.dim("n", a, b))) for a, b in ((0, 7), (8, 50)))
    x = ap.placeholder((ap.dim("n", 8, 50), 8), name="x")
    doubled = State.initial([x, ap.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="z")])
    for states in ([one, one], [one, doubled]):
        with pytest.raises(UsageError, match="if they are those of one definition"):
            ap.build(states)
    with pytest.raises(UsageError, match="does not continue"):
        ap.build([State.initial(product(ap.dim("n", 0, 6))), other])


def test_wrong_sizes_are_refused(rng: Rng) -> None:
    kernel = ap.build(product(ap.dim("n", 2, 50, step=2))).bind(w=np.ones((16, 8), np.float32))
    x, b = given_for(6, rng)
    with pytest.raises(UsageError, match="n is from 2 to 50, a multiple of 2"):
        kernel(*given_for(7, rng))
    with pytest.raises(UsageError, match="n is from 2 to 50"):
        kernel(*given_for(52, rng))
    with pytest.raises(UsageError, match="'b' takes 13 of float32, got 5"):
        kernel(x, b[:5])
    with pytest.raises(UsageError, match="'x' has 2 axes, got 1 axes"):
        kernel(b, b)
    with pytest.raises(UsageError, match="'x' has 2 axes, got no shape"):
        kernel([1, 2], b)
    with pytest.raises(UsageError, match="'z' takes 6x8 of float32, got 5x8"):
        kernel(x, b, out=np.zeros((5, 8), np.float32))


def test_an_input_tells_the_size() -> None:
    n, m = ap.dim("n", 1, 5), ap.dim("m", 1, 5)
    x = ap.placeholder((n * m,), name="x")
    with pytest.raises(UsageError, match="do not tell the size of m"):
        ap.build([x, ap.compute((n * m,), lambda i: x[i] * 2.0, name="y")])


@pytest.mark.usefixtures("few_sizes")
def test_schedules_for_another_machine_are_chosen_by_prediction(tmp_path: Path) -> None:
    tensors = product(ap.dim("n", 1, 8))
    kernel = ap.tune(tensors, target="cortex-a76", effort="none", db=tmp_path / "n.db")
    assert kernel.median_ms is None and "n" in kernel.program


@pytest.mark.usefixtures("few_sizes")
def test_a_tuned_kernel_takes_every_size(tmp_path: Path, rng: Rng) -> None:
    kernel = ap.tune(product(ap.dim("n", 1, 90)), trials=5, db=tmp_path / "n.db", threads=2)
    w = rng.random((16, 8), np.float32)
    kernel.bind(w=w)
    for n in (1, 2, 3, 5, 8, 21, 22, 60, 89, 90):
        x, b = given_for(n, rng)
        np.testing.assert_allclose(kernel(x, b), x @ w + b[1::2][:n, None], rtol=1e-5)


def refuting(monkeypatch: pytest.MonkeyPatch, most: int) -> list[str]:
    """Refute the first *most* schedules for several sizes; the steps of all that are proved."""
    prove, asked = Prover.prove, list[str]()

    def planted(self: Prover, state: State) -> Proof:
        if state.definition.dims:
            asked.append(str(state.history))
            if asked[-1] in [*dict.fromkeys(asked)][:most]:
                return Proof.of([Finding.refuted(Claim.BOUNDS, "x is read at 9 in dimension 0")])
        return prove(self, state)

    monkeypatch.setattr(Prover, "prove", planted)
    return asked


def doubled() -> list[ap.Tensor]:
    x = ap.placeholder((ap.dim("n", 1, 9), 8), name="x")
    return [x, ap.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="y")]


def test_where_a_program_is_refuted_for_all_sizes_the_next_best_is_taken(
    tmp_path: Path, rng: Rng, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = refuting(monkeypatch, 1)
    for _ in range(2):
        kernel = ap.tune(doubled(), effort="none", db=tmp_path / "n.db", threads=2)
        for n in (1, 4, 9):
            given = rng.random((n, 8), np.float32)
            np.testing.assert_array_equal(kernel(given), given * 2)
    assert asked.count(asked[0]) == 1 < len(asked), "the second time, it is known"
    assert caplog.text.count("skipping a program that is refuted: x is read at 9") == 1
    with Database(tmp_path / "n.db") as database:
        kinds = {
            record.kind
            for task in database.tasks() if "any size" in task.name
            for record in database.records(task.key)
        }  # fmt: skip
    assert kinds == {TrialKind.REFUTED}


def test_where_all_programs_for_all_sizes_are_refuted_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuting(monkeypatch, 100)
    with pytest.raises(NoValidProgram, match="is left\nrefuted: x is read at 9 in dimension 0"):
        ap.tune(doubled(), effort="none", db=tmp_path / "n.db", threads=2)


def test_a_program_that_failed_at_a_size_does_not_replace_refuted_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuting(monkeypatch, 1)

    def failed(self: Timer, task: Task, states: Sequence[State]) -> list[float | None]:
        is_last = task.at == (("n", 9),)
        is_inside = ["['j.0', 'i']" in str(state.history) for state in states]
        return [None if inside or not is_last else inf for inside in is_inside]

    monkeypatch.setattr(Timer, "recorded", failed)
    with pytest.raises(NoValidProgram, match="no program for all sizes is left"):
        ap.tune(doubled(), effort="none", db=tmp_path / "n.db", threads=2)


@pytest.mark.parametrize(("refuted_to", "refuted"), [(4, {"y[n=2]", "y[n=3]"}), (1, {"y[n=2]"})])
def test_a_refutation_is_recorded_for_the_sizes_that_stand_for_its_part(
    refuted_to: int, refuted: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove = Prover.prove

    def planted(self: Prover, state: State) -> Proof:
        if [dim.high for dim in state.definition.dims] == [refuted_to]:
            return Proof.of([Finding.refuted(Claim.BOUNDS, "x is read at 9 in dimension 0")])
        return prove(self, state)

    def split(state: State, dim: Dim) -> list[tuple[State, Dim]]:
        """As if the boxes of all schedules were of one size above *refuted_to*."""
        if not dim.low <= refuted_to < dim.high:
            return [(state, dim)]
        parts = [replace(dim, high=refuted_to), replace(dim, low=refuted_to + 1)]
        dags = [dag_at(state.definition, {dim: dim_extent(part)}) for part in parts]
        return [
            (State.replay(dag, state.history), part) for dag, part in zip(dags, parts, strict=True)
        ]

    monkeypatch.setattr(Prover, "prove", planted)
    monkeypatch.setattr(program, "split_below_boxes", split)
    with pytest.raises(NoValidProgram, match="is left\nrefuted: x is read at 9 in dimension 0"):
        ap.tune(doubled(), effort="none", db=tmp_path / "n.db", threads=2)
    with Database(tmp_path / "n.db") as database:
        tasks = [task for task in database.tasks() if "any size" in task.name]
        assert {task.name.partition(" ")[0] for task in tasks} == refuted


def test_where_all_found_are_refuted_those_predicted_for_the_definition_are_tried(
    tmp_path: Path, rng: Rng, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Task] = []

    def plain(self: Tuner, task: Task) -> Chosen:
        tried.append(task)
        if len(tried) == 1:
            raise NoValidProgram("no program is correct")
        state = State.initial(task.dag)
        return Chosen(task, (state,), build_lowered(lower(state), task.target, "y"), None, ())

    prove = Prover.prove

    def planted(self: Prover, state: State) -> Proof:
        if state.definition.dims and str(state.history):
            return Proof.of([Finding.refuted(Claim.BOUNDS, "x is read at 9 in dimension 0")])
        return prove(self, state)

    monkeypatch.setattr(Tuner, "predicted_directly", plain)
    monkeypatch.setattr(Prover, "prove", planted)
    kernel = ap.tune(doubled(), effort="none", db=tmp_path / "n.db", threads=2)
    assert len(tried) > 1, "one that has no program leaves the others"
    for n in (1, 9):
        given = rng.random((n, 8), np.float32)
        np.testing.assert_array_equal(kernel(given), given * 2)


def test_several_dimensions_share_one_schedule(tmp_path: Path, rng: Rng) -> None:
    n, m = ap.dim("n", 1, 9), ap.dim("m", 4, 16, step=4)
    x = ap.placeholder((n, m), name="x")
    y = ap.compute((m, n), lambda i, j: x[j, i] * 2.0, name="y")
    kernel = ap.tune([x, y], trials=4, db=tmp_path / "nm.db", threads=1)
    for shape in ((1, 4), (9, 16), (5, 12)):
        given = rng.random(shape, np.float32)
        np.testing.assert_array_equal(kernel(given), given.T * 2)


def test_what_differs_from_the_reference_is_refused() -> None:
    def scaled(n: Extent, factor: float) -> ap.ComputeDAG:
        x = ap.placeholder((n, 4), name="x")
        return ap.ComputeDAG([ap.compute((n, 4), lambda i, j: x[i, j] * factor, name="y")])

    def built(dag: ap.ComputeDAG) -> Built:
        return build_lowered(lower(State.initial(dag)), Target.host(), "scaled")

    n = ap.dim("n", 1, 9)
    right, wrong = (built(scaled(n, factor)) for factor in (2.0, 2.001))
    task = Task(scaled(7, 2.0), Target.host(), threads=1)
    sizes = {dim: 7 for dim in right.dims}
    require_equal(right.at(sizes), built(task.dag), task, seed=0)
    with pytest.raises(NoValidProgram, match="the kernel for all sizes is wrong"):
        require_equal(wrong.at(sizes), built(task.dag), task, seed=0)


def test_the_sizes_that_stand_for_all_are_sizes() -> None:
    def of(*dims: Dim) -> list[list[object]]:
        return [list(sizes.values()) for sizes in sizes_for(dims)]

    assert of(Dim("n", 1, 512)) == [[7], [29], [113], [461]]
    assert of(Dim("w", 320, 1280, 32)) == [[416], [544], [736], [992]]
    assert of(Dim("n", 0, 3)) == [[1], [2], [3]]
    assert of(Dim("n", 0, 64), Dim("m", 5, 6))[-1] == [53, 5]


def test_sizes_beyond_all_calls_need_not_be_prime() -> None:
    """It takes long to find primes among them."""
    n = ap.dim("n", 1, (1 << 63) - 1)
    x = ap.placeholder((n, 64), name="x")
    dag = ap.ComputeDAG([ap.compute((n, 64), lambda i, j: x[i, j] * 2.0, name="y")])
    group = TaskGroup.of(dag, lambda dag, name: Task(dag, Target.host(), 1, name=name))
    assert all(task.dag.args[0].shape[0] < 1 << 31 for task in group.every)


def test_no_call_is_timed_at_which_all_sizes_are_large() -> None:
    batch, h, w = (
        ap.dim("batch", 1, 32), ap.dim("h", 32, 1280, step=32), ap.dim("w", 32, 1280, step=32)
    )  # fmt: skip
    x = ap.placeholder((batch, h, w, 16), name="x")
    dag = ap.ComputeDAG([ap.compute(x.shape, lambda *i: x[i] + 1.0, name="y")])
    group = TaskGroup.of(dag, lambda dag, name: Task(dag, Target.host(), 1, name=name))
    least, *_, most = group.tasks.values()
    assert list(least.values()) == [2, 64, 64]
    assert most[dag.main_dim] == 992 and max(task.bytes for task in group.every) <= 1 << 27


def test_sizes_are_not_lowered_until_nothing_is_left() -> None:
    """At half of n, x would be empty; rows, which decide about schedules, are fewer instead."""
    rows, n = ap.dim("rows", 1, 8192), ap.dim("n", 1, 2000)
    x = ap.placeholder((rows, n // 1000, 8192), name="x")
    dag = ap.ComputeDAG([ap.compute(x.shape, lambda *i: x[i] + 1.0, name="y")])
    group = TaskGroup.of(dag, lambda dag, name: Task(dag, Target.host(), 1, name=name))
    named = [
        {dim.name: fixed(size) for dim, size in sizes.items()} for sizes in group.every.values()
    ]
    assert named and all(sizes["n"] >= 1000 and sizes["rows"] < 4096 for sizes in named)
    assert 0 < max(task.bytes for task in group.every) <= 1 << 27


def test_schedules_are_timed_between_them_too() -> None:
    n, w = Dim("n", 1, 512), Dim("w", 320, 1280, 32)
    assert [sizes[n] for sizes in sizes_between([n], sizes_for([n]))] == [
        5, 19, 71, 181, 287, 375, 512,
    ]  # fmt: skip
    assert [sizes[w] for sizes in sizes_between([w], sizes_for([w]))] == [
        384,
        480,
        640,
        864,
        928,
        1280,
    ]
