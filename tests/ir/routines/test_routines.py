"""Routines: their loop programs, compiled and interpreted, against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import ForeignFile, ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.places import Inverse, TruePlaces
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.rows import RowOrder
from ansorpy.ir.routines.scatters import SCATTERS, Scatters, ScatterSum
from ansorpy.ir.routines.suppression import Suppression
from ansorpy.ir.routines.table import ROUTINES
from ansorpy.ir.routines.top import TopPlaces
from ansorpy.ir.tensor import computed_by, placeholder
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict, structural_hash
from ansorpy.runtime.kernel import Kernel
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.codegen.c.compiled import needs_cc

Array = np.ndarray
Rng = np.random.Generator
KINDS = ("float32", "float64", "float16", "int64", "int32", "uint64", "uint32", "int8", "bool")


def definition(
    routine: Routine, arrays: Sequence[Array], shape: Sequence[int], dtype: DType = DType.INT64
) -> ComputeDAG:
    inputs = [placeholder(a.shape, as_dtype(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
    return ComputeDAG([computed_by(routine, inputs, shape, dtype, name="y")], inputs)


KERNELS: dict[str, Kernel] = {}


def built(dag: ComputeDAG) -> Kernel:
    """A kernel of *dag*, which equal definitions share."""
    key = structural_hash(dag)
    if key not in KERNELS:
        KERNELS[key] = ap.build(State.initial(dag))
    return KERNELS[key]


def check(dag: ComputeDAG, arrays: Sequence[Array], *, interpreted: bool = False) -> Array:
    """The result, which is the same compiled, interpreted, and in numpy."""
    [want] = run_dag(dag, dict(zip([a.name for a in dag.args], arrays, strict=True)))
    np.testing.assert_array_equal(built(dag)(*arrays), want)
    if interpreted:
        out = np.zeros_like(want)
        run_program(lower(State.initial(dag)).run, [*arrays, out])
        np.testing.assert_array_equal(out, want)
    return want


def drawn(shape: Sequence[int], kind: str, rng: Rng) -> Array:
    """Numbers of which several are equal, among them the extreme ones of their type."""
    dtype = np.dtype(kind)
    values = rng.integers(0, 12, shape)
    if kind == "bool":
        return values > 5
    if dtype.kind == "f":
        special = np.asarray(
            [np.nan, -np.inf, np.inf, -0.0, 0.0, 1e-7, -1e-7, -3, 2.5, 6e4, -6e4, 1], dtype
        )
        return special[values]
    info = np.iinfo(dtype)
    special = np.asarray([info.min, info.max, info.max - 1, info.min + 1, *range(8)], dtype)
    return special[values]


ROWS = [((3, 7), 7), ((2, 331), 331), ((2, 509), 3), ((1, 61), 2)]
"""Shapes and how many places: each type has half of them by rising numbers, half by falling ones,
one that is sorted as a whole and one of which few are kept."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [False, True])
def test_places_of_the_first_are_stable_in_every_type(kind: str, largest: bool, rng: Rng) -> None:
    for shape, k in ROWS[(KINDS.index(kind) + largest) % 2 :: 2]:
        x = drawn(shape, kind, rng)
        places = check(definition(TopPlaces(largest), [x], (shape[0], k)), [x])
        order = np.argsort(x.astype(np.float64), axis=1, kind="stable")
        if not largest and x.dtype.itemsize < 8:
            np.testing.assert_array_equal(places, order[:, :k])


@pytest.mark.parametrize(("n", "k"), [
    (1, 1), (2, 1), (31, 31), (40, 1), (97, 24), (200, 200), (301, 75), (701, 160), (1009, 1009),
    (5003, 37), (5003, 1000), (20011, 20011),
])  # fmt: skip
def test_rows_of_any_length_are_sorted(n: int, k: int, rng: Rng) -> None:
    for x in (
        rng.standard_normal((2, n)), np.sort(rng.standard_normal((2, n))), np.zeros((2, n)),
        -np.sort(-rng.integers(0, 5, (2, n))),
    ):  # fmt: skip
        given = x.astype(np.float32)
        check(definition(TopPlaces(True), [given], (2, k)), [given])
    if n < 3 or n > 600:  # others, in every type, see above
        wide = rng.standard_normal((1, n))
        check(definition(TopPlaces(False), [wide], (1, k)), [wide])


@pytest.mark.parametrize("largest", [False, True])
def test_programs_of_sorts_do_what_they_say(largest: bool, rng: Rng) -> None:
    for n, k in ((5, 5), (61, 2), (60, 60), (330, 330)):
        x = rng.integers(-9, 9, (1, n)).astype(np.float32)
        check(definition(TopPlaces(largest), [x], (1, k)), [x], interpreted=True)


def test_rows_of_open_length_are_sorted(rng: Rng) -> None:
    n = dim("n", 3, 700)
    x = placeholder((2, n), name="x")
    dag = ComputeDAG([computed_by(TopPlaces(True), [x], (2, 3), DType.INT64, name="y")])
    kernel = ap.build(State.initial(dag))
    for size in (3, 4, 35, 36, 699, 700):
        given = rng.standard_normal((2, size)).astype(np.float32)
        want = np.argsort(-given, axis=1, kind="stable")[:, :3]
        np.testing.assert_array_equal(kernel(given), want)


@pytest.mark.parametrize("n", [1, 2, 97, 1000])
def test_places_of_true_elements(n: int, rng: Rng) -> None:
    for flags in (rng.random(n) > 0.5, np.ones(n, bool), np.zeros(n, bool)):
        check(definition(TruePlaces(), [flags], (n + 1,)), [flags], interpreted=n < 100)


@pytest.mark.parametrize("n", [1, 13, 1000])
def test_inverse_of_an_order(n: int, rng: Rng) -> None:
    order = rng.permutation(n)
    places = check(definition(Inverse(), [order], (n,)), [order], interpreted=n < 100)
    np.testing.assert_array_equal(places[order], np.arange(n))


@pytest.mark.parametrize("settings", [(p, e, b) for p in (0, 1) for e in (0, 1) for b in (0, 1)])
def test_running_sums_and_products(settings: tuple[int, int, int], rng: Rng) -> None:
    routine = Prefixes(*map(bool, settings))
    for shape in ((1, 1, 1), (3, 7, 1), (2, 11, 5)):
        x = rng.integers(-3, 4, shape)
        check(definition(routine, [x], shape), [x], interpreted=True)
    halves = rng.integers(0, 3, (2, 9, 3)).astype(np.float16)
    check(definition(routine, [halves], halves.shape, DType.FLOAT16), [halves])


@pytest.mark.parametrize("kind", ["float32", "int64", "uint8"])
def test_order_of_rows(kind: str, rng: Rng) -> None:
    for n, m in ((1, 1), (17, 1), (61, 3), (331, 2)):
        x = rng.integers(0, 3, (n, m)).astype(kind)
        order = check(definition(RowOrder(), [x], (n,)), [x], interpreted=n < 20)
        np.testing.assert_array_equal(order, np.lexsort(x.T[::-1]))


def boxes_of(shape: Sequence[int], rng: Rng) -> tuple[Array, Array]:
    batch, classes, n = shape
    corners = rng.random((batch, n, 2, 2)).astype(np.float32)
    boxes = np.concatenate([corners[:, :, 0], corners[:, :, 0] + corners[:, :, 1] / 3], axis=2)
    scores = rng.integers(0, 50, shape).astype(np.float32) / 50
    scores[..., 2:3] = np.nan
    return boxes, scores


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (1, 2, 97), (1, 1, 1100)])
@pytest.mark.parametrize(("centred", "limited"), [(False, True), (True, False)])
def test_suppression(shape: tuple[int, int, int], centred: bool, limited: bool, rng: Rng) -> None:
    boxes, scores = boxes_of(shape, rng)
    for most, room in product((0, 2, 3, 1 << 40), (3, shape[2])):
        arrays: list[Any] = [
            boxes, scores, np.asarray([most]), np.asarray([0.3], np.float32),
            np.asarray([0.4], np.float32),
        ]  # fmt: skip
        dag = definition(Suppression(centred, limited), arrays, (*shape[:2], room))
        check(dag, arrays, interpreted=shape[2] < 10)


@pytest.mark.parametrize(
    ("shape", "count", "by_row"),
    [((1, 7, 1), 9, True), ((3, 5, 4), 11, False), ((1, 31, 150), 40, True), ((2, 1, 3), 2, True),
     ((1, 500, 64), 300, False), ((1, 9, 5), 3, True)],
)  # fmt: skip
@pytest.mark.parametrize("routine", SCATTERS)
def test_updates_are_applied_in_order(
    routine: type[Scatters], shape: tuple[int, int, int], count: int, by_row: bool, rng: Rng
) -> None:
    """Some places are below 0 or above all others: these are ignored."""
    batch, n, columns = shape
    x, updates = rng.standard_normal(shape), rng.standard_normal((batch, count, columns))
    places = rng.integers(-1, n + 1, (batch, count, 1 if by_row else columns))
    arrays: list[Array] = [x.astype(np.float32), places, updates.astype(np.float32)]
    dag = definition(routine(), arrays, shape, DType.FLOAT32)
    check(dag, arrays, interpreted=n * columns < 100)


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("routine", SCATTERS)
def test_updates_of_every_type(routine: type[Scatters], kind: str, rng: Rng) -> None:
    if kind == "bool" and routine is not SCATTERS[0]:
        pytest.skip("booleans are only replaced")
    x, updates = (
        rng.integers(0, 2 if kind == "bool" else 9, (2, k, 3)).astype(kind) for k in (5, 9)
    )
    arrays: list[Array] = [x, rng.integers(0, 5, (2, 9, 3)), updates]
    check(definition(routine(), arrays, x.shape, as_dtype(x.dtype)), arrays)


def test_updates_of_tensors_of_open_size(rng: Rng) -> None:
    n, k = dim("n", 1, 60), dim("k", 0, 90)
    x, u = placeholder((1, n, 3), name="x"), placeholder((1, k, 3), name="u")
    at = placeholder((1, k, 1), DType.INT64, name="at")
    dag = ComputeDAG([computed_by(ScatterSum(), [x, at, u], (1, n, 3), DType.FLOAT32, name="y")])
    kernel = ap.build(State.initial(dag))
    for rows, count in ((1, 1), (60, 90), (7, 40), (5, 1)):
        given = [rng.integers(-9, 9, (1, size, 3)).astype(np.float32) for size in (rows, count)]
        places = rng.integers(0, rows, (1, count, 1))
        want = ScatterSum().evaluate([given[0], places, given[1]], given[0].shape)
        np.testing.assert_array_equal(kernel(given[0], places, given[1]), want)


def test_descriptions_of_definitions_keep_routines() -> None:
    x = np.zeros((2, 9), np.float32)
    dags = [definition(TopPlaces(largest), [x], (2, 3)) for largest in (False, True)]
    assert len({structural_hash(dag) for dag in dags}) == 2
    for dag in dags:
        again = dag_from_dict(dag_to_dict(dag))
        assert again.routine == dag.routine and structural_hash(again) == structural_hash(dag)
    data = dag_to_dict(dags[0])
    for wrong in (["quicksort", {}], ["top_places", {}], ["top_places", {"largest": 3}], "x"):
        data["ops"][-1]["routine"] = wrong
        with pytest.raises(ForeignFile, match="routine|top_places"):
            dag_from_dict(data)
    assert all(kind.name == name for name, kind in ROUTINES.items())


def test_routines_are_not_scheduled() -> None:
    x = np.zeros((2, 9), np.float32)
    state = State.initial(definition(TopPlaces(True), [x], (2, 3)))
    state = state.parallel("y", [state.stage("y").iters[0]])
    with pytest.raises(ScheduleError, match="top_places is an algorithm"):
        lower(state)


def test_a_routine_is_a_definition_of_its_own() -> None:
    x = placeholder((2, 9), name="x")
    y = computed_by(TopPlaces(True), [x], (2, 3), DType.INT64, name="y")
    with pytest.raises(ValueError, match="a definition of its own"):
        ComputeDAG([ap.compute((2, 3), lambda i, j: y[i, j] + 1, name="z")])
    with pytest.raises(ValueError, match="reads each input once"):
        computed_by(Inverse(), [x, x], (2, 9), DType.INT64, name="y")


@needs_cc
@pytest.mark.parametrize(
    ("target", "kind", "n", "k"),
    [("c", "float32", 50, 3), ("c", "float64", 150, 20), ("c", "bool", 200, 200),
     ("c:word=32,vector=256", "float32", 200, 200), ("c:word=32,vector=256", "float64", 50, 3),
     ("c:word=32,vector=256", "bool", 150, 20)],
)  # fmt: skip
def test_routines_in_c(target: str, kind: str, n: int, k: int, rng: Rng) -> None:
    x = drawn((3, n), kind, rng)
    dag = definition(TopPlaces(True), [x], (3, k))
    [want] = run_dag(dag, {"x0": x})
    np.testing.assert_array_equal(ap.build(State.initial(dag), target=target)(x), want)
