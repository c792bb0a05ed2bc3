"""The nest of a population equals, row for row, the nest of each candidate alone."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Leaf, LeafAccess, build_nest
from ansorpy.schedule.tables.size import Column, Size, as_array
from tests.rules.algorithms.transposed import by_residue
from tests.schedule.test_state import tiled


def at(size: Size, row: int) -> int:
    assert isinstance(size, int | Column)
    return int(size.values[row]) if isinstance(size, Column) else size


def access_row(access: LeafAccess, row: int) -> tuple[object, ...]:
    shape = tuple(at(s, row) for s in access.shape)
    coefs = tuple(tuple(at(c, row) for c in dim) for dim in access.coefs)
    return (access.buffer, shape, coefs, access.alloc_depth, access.is_packed)


def leaf_row(leaf: Leaf, row: int) -> tuple[object, ...]:
    loops = tuple(
        (x.stage, x.name, x.kind, at(x.extent, row), at(x.parallel, row), at(x.vector, row))
        for x in leaf.loops
    )
    accesses = tuple(access_row(a, row) for a in (*leaf.accesses, leaf.write))
    return (leaf.stage, loops, accesses, at(leaf.max_unroll, row))


def test_a_column_pass_equals_every_row_alone():
    space = Space(tiled())
    table = space.sample(64, np.random.default_rng(7))
    columns = build_nest(space.state, space.values(table))
    for row, candidate in enumerate(table):
        alone = build_nest(space.resolve(candidate), {})
        together = [leaf_row(leaf, row) for leaf in columns.leaves]
        assert together == [leaf_row(leaf, 0) for leaf in alone.leaves]


def test_iterations_times_stride_cover_the_output_once():
    space = Space(tiled())
    table = space.sample(32, np.random.default_rng(3))
    nest = build_nest(space.state, space.values(table))
    done = next(leaf for leaf in nest.leaves if leaf.stage == "D")
    total = np.ones(len(table), dtype=np.int64)
    for loop in done.loops:
        total *= as_array(loop.extent, len(table))
    assert (total == 4 * 8).all()


def test_the_nest_of_a_table_knows_the_strides_of_arguments_that_are_parts_of_larger_tensors():
    a = placeholder((24, 16), name="a")
    b = compute((24, 16), lambda i, j: a[i, j] * 2.0, name="b")
    dag = ComputeDAG([b], [a], {"a": (32, 1), "b": (48, 1)})
    state, _ = State.initial(dag).split("b", "i", (None,))
    space = Space(state)
    table = space.sample(5, np.random.default_rng(0))
    [tabled], [built] = space.nest(table).leaves, build_nest(state, space.values(table)).leaves
    assert [x.strides for x in (*tabled.accesses, tabled.write)] == [(32, 1), (48, 1)]
    assert [x.strides for x in (*built.accesses, built.write)] == [(32, 1), (48, 1)]


def test_sizes_refuse_to_be_branched_on():
    with pytest.raises(TypeError, match="must not branch"):
        bool(Column([1, 2]))


def test_residues_of_sums_have_strides():
    """Taps at ``(a + 1) % 3 + t * 3`` move with ``a`` and ``t``, not with the channels."""
    nest = build_nest(State.initial(by_residue(7, 5, 3, 1)), {})
    leaf = nest.leaves[-1]
    loops = [loop.name for loop in leaf.loops]
    x, w = (next(a for a in leaf.accesses if a.buffer == name) for name in "XW")
    assert all(x.exact) and all(w.exact)
    assert dict(zip(loops, w.coefs[0], strict=True)) == {"h": 0, "a": 1, "o": 0, "t": 3, "rc": 0}
    assert dict(zip(loops, x.coefs[0], strict=True)) == {"h": 1, "a": 0, "o": 0, "t": -1, "rc": 0}
