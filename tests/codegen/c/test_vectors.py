"""Vector loops and register tiles: what becomes a vector, a variable, a loop."""

from __future__ import annotations

import re

import pytest

from ansorpy.codegen.c.emit import emit_c
from ansorpy.codegen.c.style import Style
from ansorpy.ir.builders import minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Var
from ansorpy.ir.loops import Program, Stmt
from tests.codegen.c.compiled import TARGET
from tests.codegen.programs import add_to, at, buffer, matmul, nest, program, put

VECTORS, SCALARS = Style(32, vectors=True), Style(32)


def lines(source: Program, style: Style = VECTORS) -> list[str]:
    """The statements of the program's only stage, without indentation."""
    text = emit_c(source, TARGET, "k", style).functions
    body = text[text.index("  // ") : text.index("\n}\n")]
    return [line.strip() for line in body.split("\n")[1:]]


def moved(loops: str, n: int, index: str = "i", dtype: DType = DType.FLOAT32) -> Program:
    """``y[i] = x[index]`` in a vector loop."""
    x, y = buffer("x", 64, dtype=dtype), buffer("y", n, dtype=dtype)

    def body(*loop: Var) -> Stmt:
        i = loop[-1]
        where = {"i": i, "2i": i * 2, "-i": 40 - i, "0": i * 0 + 3}[index]
        return put(y, (i,), at(x, where))

    return program(nest(loops, body), [x], [y])


def test_a_loop_of_one_vector() -> None:
    assert lines(moved("v8", 8)) == ["store_f32x8(&y[0], load_f32x8(&x[0]));"]


def test_lanes_that_are_not_in_use_are_not_stored() -> None:
    assert lines(moved("v5", 5)) == ["store_part_f32x8(&y[0], load_f32x8(&x[0]), 5);"]
    beyond = moved("v61", 61)
    assert lines(beyond)[-1] == "store_part_f32x8(&y[56], load_f32x8(&x[56]), 5);"


def test_a_long_loop_is_a_loop_over_vectors() -> None:
    assert lines(moved("v64", 64)) == [
        "for (int32_t i0 = 0; i0 < 8; ++i0) {  // 8 at a time",
        "store_f32x8(&y[i0 * 8], load_f32x8(&x[i0 * 8]));",
        "}",
    ]


@pytest.mark.parametrize(
    ("index", "value"),
    [
        ("2i", "(f32x8){x[0], x[2], x[4], x[6], x[8], x[10], x[12], x[14]}"),
        ("-i", "(f32x8){x[40], x[39], x[38], x[37], x[36], x[35], x[34], x[33]}"),
        ("0", "splat_f32x8(x[3])"),
    ],
)
def test_elements_that_are_not_neighbours(index: str, value: str) -> None:
    assert lines(moved("v8", 8, index)) == [f"store_f32x8(&y[0], {value});"]


def test_wider_types_have_fewer_lanes() -> None:
    assert lines(moved("v4", 4, dtype=DType.FLOAT64)) == ["store_f64x4(&y[0], load_f64x4(&x[0]));"]
    halves = lines(moved("v8", 8, dtype=DType.FLOAT16))
    assert halves == ["store_u16x8(&y[0], to_f16x8(from_f16x8(load_u16x8(&x[0]))));"]


def test_a_guarded_read_reads_lane_by_lane() -> None:
    x, y = buffer("x", 6), buffer("y", 4, dtype=DType.FLOAT32)
    body = nest("v4", lambda i: put(y, (i,), select(i >= 1, at(x, i - 1), 0.0)))
    text = " ".join(lines(program(body, [x], [y])))
    assert "(f32x4){0.0f, x[0], x[1], x[2]}" in text


def test_lanes_that_add_to_one_element_are_added_up_first() -> None:
    x, y = buffer("x", 13), buffer("y", 1)
    body = nest("v13", lambda i: add_to(y, (0,), at(x, i)))
    whole, *part = lines(program(body, [x], [y]))
    assert whole == "y[0] = y[0] + sum_of_f32x8(load_f32x8(&x[0]));"
    used = "(i32x8){-1, -1, -1, -1, -1, 0, 0, 0}"
    assert f"sum_of_f32x8(select_f32x8({used}, load_part_f32x8(&x[8], 5)," in " ".join(part)


def test_a_register_tile_of_vectors_is_variables() -> None:
    text = "\n".join(lines(matmul(4, 16, 8, 2, 16)))
    assert "f32x8 tile_0_0, tile_0_8, tile_1_0, tile_1_8;" in text
    assert (
        """\
for (int32_t i0_1 = 0; i0_1 < 8; ++i0_1) {
tile_0_0 += A[i0 * 16 + i0_1] * load_f32x8(&B[i0_1 * 16]);
tile_0_8 += A[i0 * 16 + i0_1] * load_f32x8(&B[i0_1 * 16 + 8]);
tile_1_0 += A[i0 * 16 + i0_1 + 8] * load_f32x8(&B[i0_1 * 16]);
tile_1_8 += A[i0 * 16 + i0_1 + 8] * load_f32x8(&B[i0_1 * 16 + 8]);
}"""
        in text
    )


def test_a_register_tile_of_scalars_is_variables_in_portable_c() -> None:
    x, y = buffer("x", 3, 8), buffer("y", 3)
    rows = program(nest("s8 u3", lambda k, i: add_to(y, (i,), at(x, i, k))), [x], [y])
    assert lines(rows, SCALARS) == [
        "{",
        "float y_acc_0, y_acc_1, y_acc_2;",
        "y_acc_0 = y[0];", "y_acc_1 = y[1];", "y_acc_2 = y[2];",
        "for (int32_t i0 = 0; i0 < 8; ++i0) {",
        "y_acc_0 += x[i0];", "y_acc_1 += x[i0 + 8];", "y_acc_2 += x[i0 + 16];",
        "}",
        "y[0] = y_acc_0;", "y[1] = y_acc_1;", "y[2] = y_acc_2;",
        "}",
    ]  # fmt: skip


def test_portable_c_names_no_extension() -> None:
    for source in (matmul(4, 16, 8, 2, 16), moved("v64", 64)):
        text = emit_c(source, TARGET, "k", SCALARS).text
        assert "__" not in re.sub("__FAST_MATH__|__FINITE_MATH_ONLY__", "", text)


def test_a_value_that_all_lanes_share_is_a_vector_where_lanes_choose() -> None:
    x, y, at_ = buffer("x", 8), buffer("y", 8), buffer("at", 1, dtype=DType.INT64)
    shared = at(x, at(at_, 0))
    body = nest(
        "v8", lambda i: put(y, (i,), select(at(x, i) < shared, minimum(at(x, i), shared), 0.0))
    )
    text = " ".join(lines(program(body, [x, at_], [y])))
    assert text.startswith("const float t = x[(int64_t)at[0]];")
    assert "min_f32x4(load_f32x4(&x[0]), splat_f32x4(t))" in text


def test_operands_become_statements_once() -> None:
    x, y = buffer("x", 8, dtype=DType.INT32), buffer("y", 3, 8, dtype=DType.INT32)

    def body(i: Var, j: Var) -> Stmt:
        element = at(x, j)
        chosen = select(i > 1, element * element, element)
        return put(y, (i, j), Binary(BinaryOp.BIT_XOR, chosen, element))

    found = lines(program(nest("s3 v8", body), [x], [y]))
    assert sum(line.startswith("if (") for line in found) == 1
