"""Features: the published oracle, columns equal to rows, every value finite."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.cost.features import FEATURE_NAMES, FEATURES, extract
from ansorpy.cost.nest_view import view_nest
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Nest, build_nest
from ansorpy.schedule.tables.size import Column
from tests.budget import examples
from tests.cost.nests import oracle_matmul, tiled_matmul


def values_of(nest: Nest, leaf: int = 0) -> dict[str, float]:
    return dict(zip(FEATURE_NAMES, extract(view_nest(nest, 1)[leaf])[0], strict=True))


def test_there_are_164_values_with_distinct_names() -> None:
    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == 164
    assert all(group.meaning for group in FEATURES)


def test_matmul_oracle() -> None:
    f = values_of(oracle_matmul())
    reads = [b for b in range(5) if f[f"B{b}.acc_read"] == 1]
    [c] = [f"B{b}" for b in range(5) if f[f"B{b}.acc_read_write"] == 1]
    [b] = [f"B{b}" for b in reads if f[f"B{b}.stride"] == 0]
    [a] = [f"B{b}" for b in reads if f[f"B{b}.stride"] != 0]
    assert f[f"{c}.bytes"] == pytest.approx(log2(512**3 * 4 + 1))
    assert f[f"{b}.unique_bytes"] == pytest.approx(log2(512**2 * 4 + 1))
    assert f[f"{a}.stride"] == pytest.approx(log2(512 + 1))
    assert f[f"{c}.reuse_dis_iter"] == pytest.approx(log2(8 * 16 + 1))
    assert f[f"{c}.reuse_dis_bytes"] == pytest.approx(log2((8 * 16 + 8 + 16) * 4 + 1))
    assert f[f"{c}.reuse_ct"] == pytest.approx(log2(512 + 1))
    assert f["unroll_num"] == pytest.approx(log2(1 + 1))
    assert f["vec_num"] == pytest.approx(log2(1 + 1))
    assert f["parallel_num"] == pytest.approx(log2(2 + 1))
    assert f["parallel_prod"] == pytest.approx(log2((512 * 512 / 16 / 8) + 1))


def test_operations_are_counted_per_evaluation() -> None:
    f = values_of(oracle_matmul())
    assert f["float_mul"] == pytest.approx(log2(512**3 + 1))
    assert f["float_addsub"] == pytest.approx(log2(512**3 + 1))
    assert f["float_mathfunc"] == f["bool_op"] == f["select_op"] == 0


def test_intensity_grows_outwards_to_flops_over_bytes() -> None:
    f = values_of(oracle_matmul())
    last = 2 * 512**3 / (3 * 512**2 * 4)
    assert f["arith_intensity_9"] == pytest.approx(log2(1 + last))
    assert f["arith_intensity_0"] <= f["arith_intensity_9"]


def test_one_pass_over_a_buffer_is_no_reuse() -> None:
    f = values_of(tiled_matmul(8, 8, 16, i1=1, i2=1, j1=1, j2=1, k1=1), leaf=1)
    [c] = [f"B{b}" for b in range(5) if f[f"B{b}.acc_read"] == 1]
    assert f[f"{c}.reuse_none"] == 1
    assert f[f"{c}.lines_d_reuse"] == pytest.approx(log2(1 + 2 * 8 * 8 * 4 / 64))


def test_a_second_touch_in_one_loop_is_serial_reuse() -> None:
    """Initialising C and adding to it are two statements in the loops around the reduction."""
    f = values_of(tiled_matmul(8, 8, 1, i1=1, i2=1, j1=1, j2=1, k1=1))
    [c] = [f"B{b}" for b in range(5) if f[f"B{b}.acc_read_write"] == 1]
    assert f[f"{c}.reuse_serial"] == 1
    assert f[f"{c}.reuse_ct"] == pytest.approx(log2(1 + 1))


def test_loops_of_extent_one_do_not_count() -> None:
    one = values_of(tiled_matmul(8, 8, 16, i1=1, i2=4, j1=1, j2=8, k1=1))
    assert one["num_loops"] == pytest.approx(log2(1 + 4))  # i.0, k.0, i.2, j.2
    assert one["parallel_num"] == pytest.approx(log2(1 + 1))


TILE = st.sampled_from([1, 2, 3, 6])
ROW = st.fixed_dictionaries(
    {
        **{name: TILE for name in ("i1", "i2", "j1", "j2", "k1")},
        **{name: st.sampled_from([0, 1]) for name in ("parallel", "vector")},
        "max_unroll": st.sampled_from([0, 16, 512]),
    }
)


@examples(40)
@given(rows=st.lists(ROW, min_size=1, max_size=9))
def test_each_row_of_a_population_equals_the_program_alone(rows: list[dict[str, int]]) -> None:
    shape = (36, 72, 6)
    columns = {name: Column([row[name] for row in rows]) for name in rows[0]}
    together = [extract(v) for v in view_nest(tiled_matmul(*shape, **columns), len(rows))]
    for r, row in enumerate(rows):
        alone = [extract(v) for v in view_nest(tiled_matmul(*shape, **row), 1)]
        for leaf, values in enumerate(alone):
            np.testing.assert_array_equal(together[leaf][r], values[0])
            assert np.isfinite(values).all()


def test_rows_of_a_part_lie_as_far_apart_as_those_of_the_whole() -> None:
    def doubled(**strides: tuple[int, ...]) -> dict[str, float]:
        a = placeholder((8, 4), name="A")
        b = compute((8, 4), lambda i, j: a[i, j] * 2.0, name="B")
        state = State.initial(ComputeDAG([b], [a], strides)).reorder("B", ["j", "i"])
        return values_of(build_nest(state, {}))

    dense, apart = doubled(), doubled(A=(64, 1), B=(1024, 1))
    assert [dense[f"B{n}.stride"] for n in range(2)] == pytest.approx([log2(5)] * 2)
    assert {apart["B0.stride"], apart["B1.stride"]} == {log2(65), log2(1025)}
    assert dense["B0.unique_lines"] == pytest.approx(log2(1 + 2))
    assert apart["B0.unique_lines"] == pytest.approx(log2(1 + 8))


@pytest.mark.parametrize(
    ("stride", "taps", "dilation"), [(2, 1, 1), (1, 3, 2), (3, 2, 1), (2, 3, 1)]
)
def test_rows_that_a_stride_steps_over_are_not_touched(
    stride: int, taps: int, dilation: int
) -> None:
    n = (12 - (taps - 1) * dilation - 1) // stride + 1
    x, c = placeholder((12, 12, 16), name="X"), reduce_axis(16, name="c")
    r, s = reduce_axis(taps, name="r"), reduce_axis(taps, name="s")
    y = compute(
        (n, n),
        lambda i, j: sum_over(
            x[i * stride + r * dilation, j * stride + s * dilation, c], axis=(r, s, c)
        ),
        name="Y",
    )
    [view] = view_nest(build_nest(State.initial(ComputeDAG([y], [x])), {}), 1)
    [read] = [buffer for buffer in view.buffers if buffer.name == "X"]
    pixels = {i * stride + t * dilation for i in range(n) for t in range(taps)}
    assert read.region[0][0] == len(pixels) ** 2 * 16
    assert read.region[2][0] == taps**2 * 16  # of one output
    row = min({*range(len(pixels) + 1)} - pixels)  # the pixels before the first gap
    assert read.run[0][0] == row * (12 if row == 12 else 1) * 16


def test_runs_are_as_long_as_those_of_inner_loops() -> None:
    """Three whole rows of each four."""
    x, r, s = placeholder((64, 32, 5), name="X"), reduce_axis(3, name="r"), reduce_axis(5, name="s")
    y = compute((64, 8), lambda n, i: sum_over(x[n, 4 * i + r, s], axis=(r, s)), name="Y")
    [view] = view_nest(build_nest(State.initial(ComputeDAG([y], [x])), {}), 1)
    [read] = [buffer for buffer in view.buffers if buffer.name == "X"]
    assert [run[0] for run in read.run] == [15, 15, 15, 5, 1]


@pytest.mark.parametrize(
    ("second", "touched"),
    [
        (lambda x, i, j: x[2 * i + 1, j], 127 * 64),
        (lambda x, i, j: x[2 * i, j], 64 * 64),
        (lambda x, i, j: x[1, j], (64 + 1) * 64),
    ],
    ids=["the other rows", "the same", "one more row"],
)
def test_several_accesses_touch_what_each_of_them_does(
    second: Callable[..., Expr], touched: int
) -> None:
    x = placeholder((128, 128), name="X")
    y = compute((64, 64), lambda i, j: x[2 * i, j] + second(x, i, j), name="Y")
    [view] = view_nest(build_nest(State.initial(ComputeDAG([y], [x])), {}), 1)
    [read] = [buffer for buffer in view.buffers if buffer.name == "X"]
    assert read.region[0][0] == touched
