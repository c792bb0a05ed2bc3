from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir.builders import select
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind, Var, const
from ansorpy.ir.interpret import program as program_module
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.interpret.races import Race
from ansorpy.ir.loops import Alloc, If, Instruction, Let, Param, Program, Role, Seq, Stmt, Store
from tests.ir.interpret.nests import buffer, load, loops, lower_plainly, program
from tests.ir.oracle import random_inputs
from tests.ir.workloads import ALL, matmul

i, j, k = Var("i"), Var("j"), Var("k")
ZERO = const(0.0, DType.FLOAT32)
ONE = const(1.0, DType.FLOAT32)
OUT = buffer("out", 8)
IN = buffer("x", 8)
X = np.arange(8, dtype=np.float32)


def filled(shape: tuple[int, ...], dtype: object = np.float32) -> np.ndarray:
    return np.full(shape, 77, dtype=dtype)  # type: ignore[call-overload,no-any-return]


def run_out(body: Stmt) -> list[float]:
    out = filled((8,))
    run_program(program(body, [IN], [OUT]), [X, out])
    return [float(v) for v in out]


@given(st.sampled_from(ALL), st.integers(0, 1000), st.sampled_from(["serial", "parallel"]))
def test_a_plain_lowering_gives_what_the_definition_says(
    make: Callable[[], ComputeDAG], seed: int, kind: str
) -> None:
    dag = make()
    v = random_inputs(dag, seed)
    outputs = [filled(op.shape, op.dtype.numpy) for op in dag.outputs]
    run_program(lower_plainly(dag, kind), [*(v[op.name] for op in dag.args), *outputs])
    for found, want in zip(outputs, run_dag(dag, v), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = matmul()
    v = random_inputs(dag)
    found = []
    for batch in (1 << 18, 8, 0):
        monkeypatch.setattr(program_module, "BATCH", batch)
        out = filled((5, 3))
        run_program(lower_plainly(dag), [v["x"], v["w"], out])
        found.append(out)
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize("batch", [0, 8])
def test_products_of_indices_wrap_around(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "BATCH", batch)
    out, found = buffer("out", 8, dtype="int64"), filled((8,), np.int64)
    body = loops(Store(out, (i,), i * 2**62 - i, None), (i, 8, "serial"))
    run_program(program(body, [], [out]), [found])
    np.testing.assert_array_equal(found, np.arange(8) * 2**62 - np.arange(8))


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized", "unrolled"])
def test_cpu_loops_of_every_kind_run_alike(kind: str) -> None:
    body = loops(Store(OUT, (i,), load(IN, i) * 2.0, None), (i, 8, kind))
    assert run_out(body) == (X * 2).tolist()


def test_a_loop_that_carries_a_value_runs_in_order() -> None:
    step = Store(OUT, (i + 1,), load(OUT, i) + load(IN, i + 1), None)
    body = Seq((Store(OUT, (const(0),), load(IN, 0), None), loops(step, (i, 7, "serial"))))
    assert run_out(body) == np.cumsum(X).tolist()


def test_the_last_iteration_wins_and_reductions_gather_duplicates() -> None:
    last = loops(Store(OUT, (j,), load(IN, i), None), (j, 8, "serial"), (i, 8, "serial"))
    assert run_out(last) == [7.0] * 8
    total = Seq((
        loops(Store(OUT, (j,), ZERO, None), (j, 8, "serial")),
        loops(
            Store(OUT, (i % 8,), load(IN, j), ReduceKind.SUM), (i, 16, "serial"), (j, 8, "serial")
        ),
    ))  # fmt: skip
    assert run_out(total) == [56.0] * 8


@pytest.mark.parametrize(
    ("kind", "want"), [("max", 7.0), ("min", 0.0), ("prod", 0.0), ("sum", 28.0)]
)
def test_every_reduction(kind: str, want: float) -> None:
    reduce = ReduceKind(kind)
    start = const(reduce.identity(DType.FLOAT32), DType.FLOAT32)
    update = loops(Store(OUT, (j,), load(IN, i), reduce), (i, 8, "serial"))
    assert (
        run_out(loops(Seq((Store(OUT, (j,), start, None), update)), (j, 8, "serial"))) == [want] * 8
    )


def test_lets_conditions_and_local_buffers() -> None:
    tmp = buffer("tmp", 2, scope="local")
    body = Alloc(tmp, Seq((
        loops(Store(tmp, (j,), load(IN, k) + 1.0, None), (j, 2, "serial")),
        Store(OUT, (i,), load(tmp, i % 2), None),
    )))  # fmt: skip
    for kind in ("serial", "parallel"):
        assert run_out(loops(Let(k, i // 2, body), (i, 8, kind))) == (X // 2 + 1).tolist()
    half = If(i < 4, Store(OUT, (i,), ONE, None), Store(OUT, (i,), ZERO, None))
    for kind in ("serial", "parallel"):
        assert run_out(loops(half, (i, 8, kind))) == [1.0] * 4 + [0.0] * 4


def test_collapsed_parallel_loops() -> None:
    body = loops(
        Store(OUT, (i * 4 + j,), load(IN, i * 4 + j), None), (i, 2, "parallel"), (j, 4, "parallel")
    )
    assert run_out(body) == X.tolist()


def test_a_local_buffer_outside_a_parallel_loop_is_each_threads_own() -> None:
    tmp = buffer("tmp", 1, scope="local")
    use = Seq((Store(tmp, (const(0),), load(IN, i), None), Store(OUT, (i,), load(tmp, 0), None)))
    assert run_out(Alloc(tmp, loops(use, (i, 8, "parallel")))) == X.tolist()
    shared = Seq((Store(tmp, (const(0),), ONE, None),
                  loops(Store(OUT, (i,), load(tmp, 0), None), (i, 8, "parallel"))))  # fmt: skip
    with pytest.raises(LoweringError, match=r"tmp\[0\] is read before it is written"):
        run_out(Alloc(tmp, shared))


def test_a_local_buffer_may_be_empty() -> None:
    tmp = buffer("tmp", 0, scope="local")
    copied = loops(Store(tmp, (j,), load(IN, j), None), (j, 0, "serial"))
    for kind in ("serial", "parallel"):
        body = Seq((copied, Store(OUT, (i,), load(IN, i), None)))
        assert run_out(loops(Alloc(tmp, body), (i, 8, kind))) == X.tolist()


def test_undefined_memory_is_an_error_that_names_the_statement() -> None:
    tmp = buffer("tmp", 8, scope="workspace")
    copy = loops(Store(OUT, (i,), load(tmp, i), None), (i, 8, "serial"))
    with pytest.raises(
        LoweringError, match=r'tmp\[0\] is read before it is written in "out\[i\] = tmp\[i\]"'
    ):
        run_out(Alloc(tmp, copy))
    with pytest.raises(LoweringError, match=r"out\[0\] is read before it is written"):
        run_out(loops(Store(OUT, (i,), ONE, ReduceKind.SUM), (i, 8, "serial")))
    partly = Seq((loops(Store(tmp, (i,), ONE, None), (i, 5, "serial")), copy))
    with pytest.raises(LoweringError, match=r"tmp\[5\] is read before it is written"):
        run_out(Alloc(tmp, partly))
    with pytest.raises(LoweringError, match="leaves 2 of 8 elements of out unwritten"):
        run_out(loops(Store(OUT, (i,), ONE, None), (i, 6, "serial")))


def test_memory_is_undefined_again_in_each_iteration() -> None:
    tmp = buffer("tmp", 1, scope="local")
    first = If(i.equal(0), Store(tmp, (const(0),), ONE, None), None)
    body = loops(Alloc(tmp, Seq((first, Store(OUT, (i,), load(tmp, 0), None)))), (i, 8, "serial"))
    with pytest.raises(LoweringError, match="is read before it is written"):
        run_out(body)


@pytest.mark.parametrize("index", [i + 1, i - 1, i * 2])
def test_leaving_a_buffer_is_an_error(index: Expr) -> None:
    for kind in ("serial", "parallel"):
        with pytest.raises(
            LoweringError, match=r"out is accessed at -?\d+ in dimension 0, which has 8"
        ):
            run_out(loops(Store(OUT, (index,), ONE, None), (i, 8, kind)))
        with pytest.raises(LoweringError, match="x is accessed at"):
            run_out(loops(Store(OUT, (i,), load(IN, index), None), (i, 8, kind)))


def test_iterations_of_a_parallel_loop_must_not_meet() -> None:
    total = Seq((
        loops(Store(OUT, (i,), ZERO, None), (i, 8, "serial")),
        loops(Store(OUT, (const(0),), load(IN, i), ReduceKind.SUM), (i, 8, "parallel")),
    ))  # fmt: skip
    with pytest.raises(Race, match=r'with no barrier in between: "out\[0\] \+= x\[i\]" and'):
        run_out(total)
    with pytest.raises(Race, match=r"out\[0\]"):
        run_out(loops(Store(OUT, (i // 2,), load(IN, i), None), (i, 8, "parallel")))
    carried = Seq((
        loops(Store(OUT, (i,), load(IN, i), None), (i, 8, "serial")),
        loops(Store(OUT, (i,), load(OUT, (i + 1) % 8), None), (i, 8, "parallel")),
    ))  # fmt: skip
    with pytest.raises(Race, match="two threads access"):
        run_out(carried)


def test_overlapping_tiles_may_write_the_same_values() -> None:
    at = i * 3 - i // 2
    body = loops(
        Store(OUT, (at + j,), load(IN, at + j), None), (i, 3, "parallel"), (j, 3, "serial")
    )
    assert run_out(body) == X.tolist()


def test_instructions_run_their_pattern_in_each_iteration() -> None:
    acc, a, b = (
        buffer("acc", 3, 16, dtype="int32"),
        buffer("a", 3, 4, dtype="uint8"),
        buffer("b", 16, 4, dtype="int8"),
    )
    zero, start = const(0, DType.INT32), (const(0), const(0))
    step = Instruction("vnni.dot_16x4", ((acc, (i, const(0))), (a, (i, const(0))), (b, start)))
    rng = np.random.default_rng(0)
    av, bv = (
        rng.integers(0, 256, (3, 4)).astype(np.uint8),
        rng.integers(-128, 128, (16, 4)).astype(np.int8),
    )
    want = av.astype(np.int32) @ bv.astype(np.int32).T
    clear = loops(Store(acc, (i, j), zero, None), (i, 3, "serial"), (j, 16, "serial"))
    for kind in ("serial", "parallel"):
        out = filled((3, 16), np.int32)
        run_program(program(Seq((clear, loops(step, (i, 3, kind)))), [a, b], [acc]), [av, bv, out])
        np.testing.assert_array_equal(out, want)
    with pytest.raises(LoweringError, match="acc.* is read before it is written"):
        run_program(
            program(loops(step, (i, 3, "serial")), [a, b], [acc]),
            [av, bv, filled((3, 16), np.int32)],
        )


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_a_reduction_over_one_element_reads_a_computed_index(kind: str) -> None:
    one = buffer("one", 1)
    body = Store(one, (const(0),), load(IN, i * 3), ReduceKind.SUM)
    clear = Store(one, (const(0),), ZERO, None)
    out = filled((1,))
    run_program(program(Seq((clear, loops(body, (i, 1, kind)))), [IN], [one]), [X, out])
    assert out.tolist() == [X[0]]


def test_arguments_are_checked() -> None:
    p = program(loops(Store(OUT, (i,), load(IN, i), None), (i, 8, "serial")), [IN], [OUT])
    with pytest.raises(UsageError, match="test takes 2 arrays, got 1"):
        run_program(p, [X])
    with pytest.raises(UsageError, match=r"out is float32\[8\], got float64\[8\]"):
        run_program(p, [X, np.zeros(8)])
    with pytest.raises(UsageError, match="out needs a dense, row-major array"):
        run_program(p, [X, filled((16,))[::2]])
    wrong = Program("w", (Param(IN, Role.INPUT),), Store(IN, (const(0),), ZERO, None))
    with pytest.raises(LoweringError, match="x is written but is not an output"):
        run_program(wrong, [X])


def test_a_guarded_read_of_an_empty_buffer_reads_nothing() -> None:
    empty = buffer("x", 0)
    body = Store(OUT, (i,), select(i < 0, load(empty, i), ONE), None)
    out = filled((8,))
    nest = loops(body, (i, 8, "serial"))
    run_program(program(nest, [empty], [OUT]), [np.zeros(0, np.float32), out])
    assert out.tolist() == [1.0] * 8
