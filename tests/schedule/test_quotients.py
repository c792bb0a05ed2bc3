"""Boxes of stages that are read at quotients of axes: ``Y[h // 4, h % 4]``."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, sampled_from

from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import Part
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Column
from tests.budget import examples
from tests.properties.test_schedules import interpreted


def untiled(extent: int, period: int, offset: int = 0) -> list[Tensor]:
    """``out[h] = Y[(h + offset) // period, (h + offset) % period]``, Y twice a tiled X."""
    tiles = -(-(extent + offset) // period)
    x = placeholder((tiles * period,), name="X")
    y = compute((tiles, period), lambda t, r: x[t * period + r] * 2.0, name="Y")
    out = compute((extent,), lambda h: y[(h + offset) // period, (h + offset) % period], name="out")
    return [x, out]


@pytest.mark.parametrize(
    ("extent", "period", "inner", "tiles"),
    [(56, 4, (2, 4), 2), (14, 4, (1, 4), 1), (14, 4, (4,), 1), (56, 4, (6,), 2), (56, 4, (5,), 2)],
)
def test_a_block_of_whole_tiles_reads_no_more_than_them(
    extent: int, period: int, inner: tuple[int, ...], tiles: int
) -> None:
    state, loops = State.initial(untiled(extent, period)).split("out", "h", inner)
    state = state.compute_at("Y", "out", loops[0])
    span, whole = Bounds(state, {}).region("Y")
    assert span.origin is not None
    assert span.origin.terms == ((Part("h", period), 1),)
    assert (span.extent, whole.extent) == (tiles, period)


def test_boxes_of_a_column_of_tiles_are_those_of_each() -> None:
    state, loops = State.initial(untiled(48, 4)).split("out", "h", (None,))
    state = state.compute_at("Y", "out", loops[0])
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 48]
    [span, _] = Bounds(state, {"out.h/1": Column(sizes)}).region("Y")
    alone = [Bounds(state, {"out.h/1": n}).region("Y")[0].extent for n in sizes]
    assert isinstance(span.extent, Column)
    assert span.extent.values.tolist() == alone == [1, 1, 2, 1, 2, 2, 3, 4, 6, 12]


@examples(60)
@given(
    extent=integers(1, 40),
    period=integers(1, 6),
    offset=sampled_from([0, 0, 1, 5]),
    tile=integers(1, 12),
    whole=booleans(),
    tail=sampled_from(["guard", "shift"]),
)
def test_any_tile_computes_the_definition(
    extent: int, period: int, offset: int, tile: int, whole: bool, tail: Literal["guard", "shift"]
) -> None:
    state = State.initial(untiled(extent, period, offset))
    inner = (tile, period) if whole else (tile,)
    state, loops = state.split("out", "h", inner, tail=tail)
    state = state.compute_at("Y", "out", loops[0])
    x = np.random.default_rng(0).standard_normal(state.definition.args[0].shape).astype(np.float32)
    [want] = run_dag(state.definition, {"X": x})
    [got] = interpreted(lower(state), {"X": x})
    np.testing.assert_array_equal(got, want)
