"""TileTransposes: copies across memory walk whole cache lines."""

from __future__ import annotations

import pytest

from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.rules.annotation.tile_transposes import TileTransposes
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, shows


def tiled(tensors: list[Tensor] | State) -> State:
    state = tensors if isinstance(tensors, State) else State.initial(tensors)
    return TileTransposes().declare(Space(state), CPU).state


def transpose(channels: int = 9) -> list[Tensor]:
    a, bias = placeholder((5, 7, channels), name="A"), placeholder((7,), name="bias")
    shape = (channels, 5, 7)
    return [a, bias, compute(shape, lambda c, n, v: a[n, v, c] + bias[v], name="T")]


def test_the_contiguous_axis_of_the_read_runs_inside_the_blocks_of_the_last_one() -> None:
    shows(
        tiled(transpose()),
        """
        for n in 0..5
          for v.0 in 0..?
            for c.0 in 0..2
              for c.1 in 0..8  # unrolled
                for v.1 in 0..?
                  T[c, n, v] = ...
        """,
    )


def test_an_axis_shorter_than_a_vector_is_walked_whole() -> None:
    assert [it.name for it in tiled(transpose(7)).stage("T").iters] == ["n", "v.0", "c", "v.1"]


def test_a_stage_that_reads_an_inlined_transpose_is_tiled() -> None:
    *inputs, t = transpose()
    state = State.initial([*inputs, compute(t.shape, lambda c, n, v: t[c, n, v] * 2.0, name="B")])
    state = tiled(state.compute_inline("T"))
    assert [it.name for it in state.stage("B").iters] == ["n", "v.0", "c.0", "c.1", "v.1"]


def test_a_stage_without_axes_is_left_alone() -> None:
    a = placeholder((5,), name="A")
    state = State.initial([a, compute((), lambda: a[2] * 2.0, name="T")])
    assert tiled(state) is state


@pytest.mark.parametrize(
    "tensors", [workloads.min_reduce(4, 8), workloads.softmax(3, 8), workloads.matmul(4, 4, 4)]
)
def test_what_reads_along_its_last_axis_or_reduces_is_left_alone(tensors: list[Tensor]) -> None:
    state = State.initial(tensors)
    assert tiled(state) is state


def test_a_stage_that_hosts_another_is_left_alone() -> None:
    a = placeholder((4, 6), name="A")
    b = compute((4, 6), lambda i, j: a[i, j] * 2.0, name="B")
    t = compute((6, 4), lambda j, i: b[i, j] + 1.0, name="T")
    state = State.initial([a, t]).compute_at("B", "T", "j")
    assert tiled(state) is state
