"""Schedules of definitions with dimensions: tiles are numbers, what is outside them is not."""

from __future__ import annotations

import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.loops import For, ForKind, If, walk_stmts
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.stage import Tail
from ansorpy.schedule.state import State


def product(n: Extent) -> list[Tensor]:
    x, w = placeholder((n, 16), name="x"), placeholder((16, 24), name="w")
    k = reduce_axis(16, name="k")
    y = compute((n, 24), lambda i, j: sum_over(x[i, k] * w[k, j], axis=k), name="y")
    return [x, w, compute((n, 24), lambda i, j: y[i, j] + 1.0, name="z")]


def tiled(n: Extent, tail: Tail) -> State:
    """Rows of *n* in parallel tiles of six, each computed in registers."""
    state, (i0, i1) = State.initial(product(n)).split("z", "i", (6,), tail=tail)
    state, (j0, j1) = state.split("z", "j", (8,))
    state = state.reorder("z", [i0, j0, i1, j1]).compute_at("y", "z", j0)
    state = state.reorder("y", ["k", "i", "j"]).unroll("y", "i").vectorize("y", ["j"])
    return state.vectorize("z", [j1]).parallel("z", [i0])


def loops(lowered: Lowered) -> dict[str, tuple[str, ForKind]]:
    """Extent and kind of each loop, by the name of its variable."""
    found = (s for s in walk_stmts(lowered.run.body) if isinstance(s, For))
    return {s.var.name: (str(s.extent), s.kind) for s in found}


def test_shifted_tiles_of_a_size_are_those_of_a_number() -> None:
    sized, plain = lower(tiled(dim("n", 6, 512), "shift")), lower(tiled(301, "shift"))
    here = program_at(sized.run, {sized.run.dims[0]: 301})
    assert text(here) == text(plain.run)
    assert loops(sized)["i.0"] == ("(n + 5)//6", ForKind.PARALLEL)
    assert loops(sized)["i"] == ("6", ForKind.UNROLLED)


def test_tiles_beyond_the_axis_are_skipped_with_what_is_computed_in_them() -> None:
    state, parts = State.initial(product(dim("n", 1, 512))).split("z", "i", (4, 6))
    lowered = lower(state.compute_at("y", "z", parts[1]))
    skipped = [s for s in walk_stmts(lowered.run.body) if isinstance(s, If)]
    assert text(skipped[0].cond) == "i.0 * 24 + i.1 * 6 < n"


def test_a_loop_over_a_size_may_be_a_vector_but_is_not_unrolled() -> None:
    state = State.initial(product(dim("n", 1, 512)))
    assert loops(lower(state.unroll("z", "i")))["i_1"] == ("n", ForKind.SERIAL)
    state = state.reorder("z", ["j", "i"]).vectorize("z", ["i"])
    assert loops(lower(state))["i_1"] == ("n", ForKind.VECTORIZED)


@pytest.mark.parametrize(
    ("low", "extent", "kind"), [(25, "3", ForKind.UNROLLED), (26, "n//8", ForKind.SERIAL)]
)
def test_parts_that_fill_all_lanes_are_unrolled_if_their_number_is_known(
    low: int, extent: str, kind: ForKind
) -> None:
    n = dim("n", low, low + 6)  # four parts of eight
    x, k = placeholder((n,), name="x"), reduce_axis(n, name="k")
    state = State.initial([x, compute((1,), lambda i: sum_over(x[k], axis=k), name="y")])
    state, parts = state.split_lanes("y", "k", 8)
    assert loops(lower(state.unroll("y", parts[0])))["k.0"] == (extent, kind)


def test_lanes_that_a_size_may_leave_out_stay_a_vector() -> None:
    def columns(n: Extent) -> State:
        x, k = placeholder((n, 5), name="x"), reduce_axis(5, name="k")
        y = compute((n,), lambda i: sum_over(x[i, k], axis=k), name="y")
        state, (_, inner) = State.initial([x, y]).split("y", "i", (8,))
        return state.reorder("y", ["i.0", "k", inner]).vectorize("y", [inner])

    assert loops(lower(columns(dim("n", 1, 512))))["i.1"] == ("8", ForKind.VECTORIZED)
    assert loops(lower(columns(301)))["i.1"] == ("8", ForKind.SERIAL)


@pytest.mark.parametrize("tail", ["even", "peel"])
def test_two_bodies_need_a_number(tail: Tail) -> None:
    with pytest.raises(ScheduleError, match=r"whose extent is n, cannot have two bodies"):
        lower(tiled(dim("n", 6, 512), tail))


def test_open_factors_need_a_number() -> None:
    with pytest.raises(ScheduleError, match="extent is n, so its factors have no domain"):
        State.initial(product(dim("n", 6, 512))).split("z", "i", (None, None))


def test_a_constant_is_not_packed_by_a_loop_over_a_size() -> None:
    n = dim("n", 1, 8)
    x, w = placeholder((n, 4), name="x"), placeholder((8, 4), name="w", constant=True)
    y = compute((n, 4), lambda i, j: x[i, j] * w[i, j], name="y")
    with pytest.raises(ScheduleError, match="the length of i depends on the call"):
        lower(State.initial([x, w, y]).pack("y", "w"))


def test_what_is_legal_is_decided_for_all_sizes() -> None:
    checked = tiled(dim("n", 6, 512), "shift").check()
    assert not checked.undecided and checked.reads
    state = State.initial(product(dim("n", 6, 512))).compute_at("y", "z", "i")
    with pytest.raises(ScheduleError):
        state.split("y", "k", (3,), tail="shift").check()  # type: ignore[attr-defined]
