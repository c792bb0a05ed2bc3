"""Constants read panel by panel: the next panel is asked for during the passes over this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.codegen.passes.prefetch_constants import prefetch_constants
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, Prefetch, Program, Seq, Stmt, substatements, walk_stmts
from ansorpy.ir.verify import verify
from ansorpy.target import Target
from tests.codegen.programs import (
    ZERO,
    Compiled,
    add_to,
    at,
    buffer,
    empty,
    nest,
    program,
    put,
    random,
)

V4 = Target.parse("x86-64-v4")
LINE = V4.cache_line_bytes // 4


def product(panels: int, rows: int, depth: int, width: int = 16, *, given: bool = True) -> Program:
    """``C[i, j, v] = sum_k A[i, k] W[j, k, v]``: panels of W outside, rows in between."""
    a, w = buffer("A", rows, depth), buffer("W", panels, depth, width)
    c = buffer("C", rows, panels, width)

    def panel(j: Expr, i: Expr) -> Stmt:
        clear = nest(f"v{width}", lambda v: put(c, (i, j, v), ZERO))
        added = nest(
            f"s{depth} v{width}",
            lambda k, v: add_to(c, (i, j, v), at(a, i, k) * at(w, j, k, v)),
        )
        return Seq((clear, added))

    body = nest(f"s{panels} s{rows}", panel)
    return program(body, [a], [c], [w]) if given else program(body, [a, w], [c])


def asked(s: Stmt, values: Mapping[Expr, int]) -> Iterator[tuple[Mapping[Expr, int], int]]:
    """Where the loops stood at each prefetch, in running order, and the element it asked for."""
    if isinstance(s, Prefetch):
        form = linear(s.offset)
        yield values, form.const + sum(c * values[atom] for atom, c in form.terms.items())
    elif isinstance(s, For):
        for i in range(s.extent):
            yield from asked(s.body, {**values, s.var: i})
    else:
        for part in substatements(s):
            yield from asked(part, values)


def prefetches(whole: Program) -> list[Prefetch]:
    return [s for s in walk_stmts(whole.body) if isinstance(s, Prefetch)]


@given(
    st.integers(2, 4), st.integers(2, 7), st.integers(1, 23), st.sampled_from([1, 5, 16, 48, 97])
)
def test_each_pass_asks_for_its_share_of_the_next_panel(
    panels: int, rows: int, depth: int, width: int
) -> None:
    whole = prefetch_constants(product(panels, rows, depth, width), V4)
    verify(whole)
    size = depth * width
    wanted: dict[int, set[int]] = {panel: set() for panel in range(panels)}
    assert isinstance(whole.body, For)
    for values, element in asked(whole.body, {}):
        wanted[values[whole.body.var]].add(element)
    for panel, elements in wanted.items():
        first = (panel + 1) * size
        # Not its last line, where that starts within the last share.
        lines = set(range(first // LINE, (first + size - 1) // LINE))
        assert lines <= {element // LINE for element in elements}
        # A share is whole elements: by that much a pass may look too far.
        assert min(elements) == first and max(elements) < first + size + rows * depth + LINE


def test_panels_are_asked_for_in_loops_over_sizes_around_them() -> None:
    n = dim("n", 1, 9)
    a, w, c = buffer("A", n, 5, 8), buffer("W", 3, 8, 16), buffer("C", n, 5, 3, 16)

    def tile(i: Expr, j: Expr, r: Expr, k: Expr, v: Expr) -> Stmt:
        return add_to(c, (i, r, j, v), at(a, i, r, k) * at(w, j, k, v))

    rows = Var("rows")
    tiles = nest("s3 s5 s8 v16", lambda j, r, k, v: tile(rows, j, r, k, v))
    whole = program(For(rows, n, ForKind.SERIAL, tiles), [a], [c], [w])
    assert prefetches(prefetch_constants(whole, V4))


@pytest.mark.parametrize("least", [1, 3])
def test_a_panel_is_read_as_often_as_is_known(least: int) -> None:
    n = dim("n", least, 9)
    a, w, c = buffer("A", n, 8), buffer("W", 99, 8, 16), buffer("C", n, 99, 16)
    rows = Var("rows")
    alone = nest(
        "s99 s8 v16", lambda j, k, v: add_to(c, (rows, j, v), at(a, rows, k) * at(w, j, k, v))
    )
    assert isinstance(alone, For)
    inside = For(alone.var, 99, ForKind.SERIAL, For(rows, n, ForKind.SERIAL, alone.body))
    [asked] = prefetches(prefetch_constants(program(inside, [a], [c], [w]), V4))
    found = linear(asked.offset)
    if least == 1:  # perhaps only once: some way ahead
        assert (found.terms[alone.var], found.const) == (128, 2048)
    else:
        share = -(-128 // (3 * 8))  # of the next panel, in each of 3 passes of 8 steps
        assert (found.terms[alone.var], found.const) == (128, 128)
        assert found.terms[rows] == 8 * share


def test_what_is_read_once_is_asked_for_ahead() -> None:
    whole = prefetch_constants(product(40, 1, 8, 48), V4)
    verify(whole)
    elements = [element for _, element in asked(whole.body, {})]
    assert elements == [2048 + line * LINE for line in range(40 * 8 * 3)]


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        (product(1, 5, 8), "no panel comes behind"),
        (product(4, 1, 8), "they are fewer than are asked for ahead"),
        (product(4, 5, 8, given=False), "a run-time operand was just written"),
        (product(2, 3, V4.l2_bytes // 128 + 1), "a panel would push the other out"),
    ],
)  # fmt: skip
def test_what_is_not_asked_for(whole: Program, why: str) -> None:
    assert prefetch_constants(whole, V4) is whole, why


def test_a_panel_that_is_not_dense_is_no_panel() -> None:
    a, w, c = buffer("A", 6, 8), buffer("W", 4, 8, 32), buffer("C", 6, 4, 16)
    body = nest(
        "s4 s6 s8 v16", lambda j, i, k, v: add_to(c, (i, j, v), at(a, i, k) * at(w, j, k, v))
    )
    dense = nest(
        "s4 s6 s8 v16",
        lambda j, i, k, v: add_to(c, (i, j, v), at(a, i, k) * at(w, j, (k * 3) % 8, v)),
    )
    assert len(prefetches(prefetch_constants(program(body, [a], [c], [w]), V4))) == 1
    assert not prefetches(prefetch_constants(program(dense, [a], [c], [w]), V4))


def test_the_code_asks_and_computes_the_same() -> None:
    whole = product(5, 7, 13, 48)
    assert "llvm.prefetch" not in emit_llvm(whole, Target.host(), "k")
    assert "llvm.prefetch" in emit_llvm(whole, Target.host(), "k", prefetch=True)
    a, w = random((7, 13)), random((5, 13, 48), seed=1)
    expected, found = empty((7, 5, 48)), empty((7, 5, 48))
    run_program(whole, [a, w, expected])
    Compiled(whole, prefetch=True)(a, w, found)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
