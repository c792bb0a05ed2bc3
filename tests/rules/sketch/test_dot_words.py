"""DotWords: the sums that become dot products, and the exact results of all their programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, Load, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.sketch.dot_words import DotWords
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.target import Target
from tests.budget import examples
from tests.run_native import run_native

RULE = DotWords()
VNNI = Target(
    "vnni", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512bf16,+avx512vl,+avx512vnni",
    2, 512, 32, 32768, 1 << 20, 1 << 24,
)  # fmt: skip
BYTES = ["int8", "uint8"]
EITHER = [True, False]


def product(
    shape: tuple[int, int, int], left: str, right: str, constant: bool = False, out: str = "int32"
) -> list[Tensor]:
    m, n, k = shape
    x = placeholder((m, k), left, name="X")
    w = placeholder((k, n), right, name="W", constant=constant)
    r = reduce_axis(k, name="k")
    c = compute(
        (m, n), lambda i, j: b.sum(x[i, r].astype(out) * w[r, j].astype(out), axis=r), name="C"
    )
    return [x, w, c]


def quantized(tensors: list[Tensor]) -> list[Tensor]:
    *inputs, c = tensors

    def scaled(i: object, j: object) -> object:
        y = b.round(c[i, j].astype("float32") * 0.01)  # type: ignore[index]
        return b.minimum(b.maximum(y, -128.0), 127.0).astype("int8")

    return [*inputs, compute(c.shape, scaled, name="D")]  # type: ignore[arg-type]


def values(dag: ComputeDAG, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for op in dag.args:
        if op.dtype.is_float:
            found[op.name] = rng.standard_normal(op.shape).astype(op.dtype.numpy)
        else:
            low, high = (-128, 128) if op.dtype.is_signed else (0, 256)
            found[op.name] = rng.integers(low, high, op.shape).astype(op.dtype.numpy)
    return found


def check_random_program(tensors: list[Tensor], target: Target, seed: int) -> None:
    dag = ComputeDAG.of(tensors)
    rng = np.random.default_rng(seed)
    sketch = SketchSampler(Task(dag, target, threads=2)).draw_one(rng)
    assert any(step.call().startswith("state = state.dot") for step in sketch.state.history)
    table = sketch.sample(40, rng)
    table = table[sketch.valid(table)]
    data = values(dag, seed)
    (want,) = run_dag(dag, data)
    for row in table[:2]:
        (got,) = run_native(lower(sketch.resolve(row)), data)
        if want.dtype == np.float32:
            np.testing.assert_allclose(got, want, atol=1e-4)
        else:
            np.testing.assert_array_equal(got, want)


def test_sums_of_narrow_products_and_no_others() -> None:
    for left, right, out, applies in [
        ("uint8", "int8", "int32", True), ("int8", "int8", "int32", True),
        ("uint8", "uint8", "int32", True), ("bfloat16", "bfloat16", "float32", True),
        ("int8", "int8", "int64", False), ("int8", "int8", "float32", False),
        ("float16", "float16", "float32", False), ("int16", "int16", "int32", False),
    ]:  # fmt: skip
        state = State.initial(product((4, 4, 8), left, right, out=out))
        assert RULE.meets(state, 2, VNNI).applies is applies, (left, right, out)
    short = State.initial(product((4, 4, 3), "int8", "int8"))
    assert not RULE.meets(short, 2, VNNI).applies, "no whole word"


def test_targets_without_the_instruction_are_left_alone() -> None:
    state = State.initial(product((4, 4, 8), "uint8", "int8"))
    assert "no dot-product instruction" in RULE.meets(state, 2, Target.parse("x86-64-v4")).reason


def words_of(tensors: list[Tensor]) -> dict[str, Tensor]:
    state = State.initial(tensors)
    [(state, _)] = RULE.apply(state, 2, VNNI)
    return {stage.name: stage.op for stage in state.stages}


def test_an_operand_that_lies_in_words_is_read_in_place() -> None:
    stages = words_of(product((4, 6, 8), "uint8", "int8"))
    assert list(stages) == ["X", "W", "W.words", "C"]
    assert stages["W.words"].shape == (2, 6) and stages["W.words"].dtype is DType.UINT32
    assert "X.words" in words_of(product((4, 6, 9), "uint8", "int8")), "9 bytes are no whole words"


def test_two_signed_operands_move_the_one_that_is_not_constant() -> None:
    stages = words_of(product((4, 6, 8), "int8", "int8", constant=True))
    assert list(stages) == ["X", "W", "X.words", "W.words", "C.offset", "C.dot", "C"]
    assert stages["C.offset"].shape == (6,)


def test_the_unsigned_operand_comes_first() -> None:
    op = words_of(product((4, 6, 8), "int8", "uint8"))["C"]
    assert isinstance(op, ComputeOp)
    [dot] = [e for e in walk(op.body) if isinstance(e, Call) and e.fn is Function.DOT_U8S8]
    first = dot.args[0]
    assert isinstance(first, Load) and first.source.name == "W.words"


def test_the_step_is_recorded_and_refuses_what_it_does_not_fit() -> None:
    tensors = product((4, 6, 8), "uint8", "int8")
    state = State.initial(tensors).dot("C", "dot_u8s8")
    again = State.replay(ComputeDAG.of(tensors), steps_from_json(steps_to_json(state.history)))
    assert again.text() == state.text()
    with pytest.raises(ScheduleError, match="only an untiled sum of products"):
        state.dot("C", "dot_u8s8")


@examples(12)
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(4, 40)),
    left=st.sampled_from(BYTES), right=st.sampled_from(BYTES), constant=st.sampled_from(EITHER),
    epilogue=st.sampled_from(EITHER), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_integer_programs_equal_the_interpreter(shape, left, right, constant, epilogue, seed):
    tensors = product(shape, left, right, constant)
    check_random_program(quantized(tensors) if epilogue else tensors, VNNI, seed)


@examples(5)
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(2, 40)),
    constant=st.sampled_from(EITHER), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_bfloat16_programs_equal_the_interpreter(shape, constant, seed):
    kind = "bfloat16"
    tensors = product(shape, kind, kind, constant, "float32")
    check_random_program(tensors, VNNI, seed)


@examples(5)
@given(channels=st.integers(4, 9), right=st.sampled_from(BYTES), seed=st.integers(0, 2**31))
def test_a_convolution_sums_over_its_channels(channels: int, right: str, seed: int) -> None:
    x = placeholder((1, 7, 7, channels), "int8", name="X")
    w = placeholder((3, 3, channels, 5), right, name="W", constant=True)
    y, s, c = reduce_axis(3, name="y"), reduce_axis(3, name="s"), reduce_axis(channels, name="c")
    out = compute(
        (1, 5, 5, 5),
        lambda n, h, v, o: b.sum(
            x[n, h + y, v + s, c].astype("int32") * w[y, s, c, o].astype("int32"), axis=(y, s, c)
        ),
        name="C",
    )
    check_random_program([x, w, out], VNNI, seed)


def gram(n: int, k: int, kind: str, *, by_columns: bool) -> list[Tensor]:
    """The products of all rows, or columns, of one matrix."""
    a = placeholder((k, n) if by_columns else (n, k), kind, name="A")
    out, r = "float32" if kind == "bfloat16" else "int32", reduce_axis(k, name="k")

    def at(i: Expr) -> Expr:
        return (a[r, i] if by_columns else a[i, r]).astype(out)

    return [a, compute((n, n), lambda i, j: b.sum(at(i) * at(j), axis=r), name="C")]


@pytest.mark.parametrize("kind", ["int8", "uint8", "bfloat16"])
@pytest.mark.parametrize(("n", "k", "by_columns"), [(8, 16, False), (5, 7, True), (5, 7, False)])
def test_both_operands_may_be_one_tensor(n: int, k: int, kind: str, by_columns: bool) -> None:
    check_random_program(gram(n, k, kind, by_columns=by_columns), VNNI, n)


def test_one_tensor_is_laid_out_once() -> None:
    [(state, _)] = RULE.apply(State.initial(gram(8, 7, "bfloat16", by_columns=True)), 1, VNNI)
    assert [stage.name for stage in state.stages] == ["A", "A.words", "C"]
