"""Boxes of attached stages that reach outside of their tensors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.ir import builders as b
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.stage import Tail
from ansorpy.schedule.state import State
from tests.budget import examples
from tests.properties.random_dags import diamond
from tests.properties.test_schedules import inputs_of, interpreted


def padded_twice(n: int = 8, unread: int = 0) -> list[Tensor]:
    """``d[i] = p[2 i] + .. + p[2 i + 2]``, p being c with two zeros on either side, and c sums of
    three neighbours of ``a``, whose last *unread* elements nobody reads."""
    x = placeholder((n + 3 + unread,), name="x")
    a = compute((n + 3 + unread,), lambda i: x[i] * 2.0, name="a")
    r, k = reduce_axis(3, name="r"), reduce_axis(3, name="k")
    c = compute((n,), lambda i: b.sum(a[i + k + 1], axis=k), name="c")
    p = compute(
        (n + 4,), lambda i: b.select((i >= 2) & (i < n + 2), c[i - 2], 0.0), name="p"
    )  # fmt: skip
    return [x, compute((n // 2 + 1,), lambda i: b.sum(p[i * 2 + r], axis=r), name="d")]


def check(state: State) -> None:
    """The interpreter, which refuses to read outside of a buffer, gets what the definition says."""
    data = inputs_of(state, np.random.default_rng(0))
    (expected,) = run_dag(state.definition, data)
    (found,) = interpreted(lower(state), data)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("unread", [0, 9])
@pytest.mark.parametrize("tile", [1, 2, 3, 5])
def test_producers_of_a_box_that_starts_outside_have_all_it_reads(tile: int, unread: int) -> None:
    state, (outer, _) = State.initial(padded_twice(8, unread)).split("d", "i", (tile,))
    for name in ("p", "c", "a"):
        state = state.compute_at(name, "d", outer)
    check(state)


def test_a_moved_box_that_reads_sums_of_axes_finds_what_it_reads() -> None:
    x = placeholder((6,), name="x")
    a = compute((6,), lambda i: x[i] * 2.0, name="a")
    t = compute((3, 2), lambda i, j: a[i * 2 + j] + 1.0, name="t")
    p = compute((3, 4), lambda i, j: b.select((j >= 1) & (j < 3), t[i, j - 1], 0.0), name="p")
    check(State.initial([x, p]).compute_at("a", "p", "j").compute_at("t", "p", "j"))


def test_a_region_is_no_larger_than_its_tensor_but_what_is_needed_may_be() -> None:
    state, (outer, _) = State.initial(padded_twice()).split("d", "i", (5,))
    for name in ("p", "c", "a"):
        state = state.compute_at(name, "d", outer)
    bounds = Bounds(state, {})
    (needed,), (region,) = bounds.needs("c", "d", 0), bounds.region("c")
    assert needed.origin is not None and needed.origin.offset == -2
    assert (needed.extent, region.extent) == (11, 8)


def attached(definition: list[Tensor], *names: str, tile: int) -> State:
    """*names*, consumers first, each computed inside tiles of ``D``."""
    state, (outer, _) = State.initial(definition).split("D", "i", (tile,))
    for name in names:
        state = state.compute_at(name, "D", outer)
    return state


@pytest.mark.parametrize("tile", [2, 3, 4, 7])
def test_a_box_moves_back_as_far_as_the_one_of_each_reader(tile: int) -> None:
    x = placeholder((20,), name="x")
    p = compute((20,), lambda i: x[i] * 2.0, name="p")
    r = compute((10,), lambda i: p[i] + 1.0, name="r")
    q = compute((20,), lambda i: p[i] * 3.0, name="q")
    d = compute((10,), lambda i: r[i] + q[i + 8], name="D")
    check(attached([x, d], "r", "q", "p", tile=tile))


@pytest.mark.parametrize("tile", [1, 2, 3, 5, 10])
def test_a_box_moves_back_with_the_halo_of_one_reader(tile: int) -> None:
    x = placeholder((13,), name="x")
    p = compute((13,), lambda i: x[i] * 2.0, name="p")
    r = compute((10,), lambda i: p[i + 3], name="r")
    q = compute((10,), lambda i: p[i] + 1.0, name="q")
    d = compute(
        (10,),
        lambda i: r[i] + b.select(i >= 1, q[i - 1], 0.0) + b.select(i < 9, q[i + 1], 0.0),
        name="D",
    )
    check(attached([x, d], "r", "q", "p", tile=tile))


@pytest.mark.parametrize("tile", [1, 3, 4])
def test_a_box_moves_back_with_a_reader_that_is_not_read_to_its_end(tile: int) -> None:
    x = placeholder((16,), name="x")
    p = compute((16,), lambda i: x[i] * 2.0, name="p")
    r = compute((16,), lambda i: p[i] + 1.0, name="r")
    d = compute((10,), lambda i: r[i] * 0.5, name="D")
    check(attached([x, d], "r", "p", tile=tile))


@examples(60)
@given(seed=integers(0, 2**32 - 1), tile=integers(1, 8))
def test_a_box_has_what_two_readers_with_their_own_ends_and_halos_read(
    seed: int, tile: int
) -> None:
    check(attached(diamond(np.random.default_rng(seed)), "R", "Q", "P", tile=tile))


@pytest.mark.parametrize("tile", [3, 4])
def test_a_box_read_at_sums_of_two_moving_axes_is_there_when_one_is_moved(tile: int) -> None:
    x = placeholder((160,), name="x")
    p = compute((160,), lambda i: x[i] * 2.0, name="p")
    r = compute((10, 16), lambda i, j: p[i * 16 + j] + 1.0, name="r")
    d = compute((10, 16), lambda i, j: r[i, j] * 0.5, name="D")
    state, (io, ii) = State.initial([x, d]).split("D", "i", (tile,))
    state, (jo, ji) = state.split("D", "j", (4,))
    state = state.reorder("D", [io, jo, ii, ji])
    check(state.compute_at("r", "D", jo).compute_at("p", "D", jo))


@pytest.mark.parametrize("tail", ["guard", "cover", "whole"])
def test_a_box_read_at_sums_of_axes_is_there_beyond_the_end_of_one(tail: Tail) -> None:
    x = placeholder((17,), name="x")
    q = compute((17,), lambda i: x[i] * 2.0, name="q")
    p = compute((10, 8), lambda i, j: q[i + j] + 1.0, name="p")
    d = compute((10, 8), lambda i, j: p[i, j] * 0.5, name="D")
    state, (outer, inner) = State.initial([x, d]).split("D", "i", (4,), tail=tail)
    state = state.reorder("D", [outer, "j", inner])
    check(state.compute_at("p", "D", "j").compute_at("q", "D", "j"))


def test_the_box_of_quotients_follows_a_box_that_is_moved_between_their_steps() -> None:
    x = placeholder((10,), name="x")
    p = compute((10,), lambda i: x[i] * 2.0, name="p")
    r = compute((38,), lambda i: p[i // 4] + 1.0, name="r")
    d = compute((10,), lambda i: r[i * 4] + b.select(i * 4 + 3 < 38, r[i * 4 + 3], 0.0), name="D")
    for tile in (1, 2, 4, 5):
        check(attached([x, d], "r", "p", tile=tile))
