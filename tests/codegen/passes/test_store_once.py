"""Iterations of parallel loops store different elements, and all elements are still stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.codegen.passes.store_once import stored_once
from ansorpy.errors import ScheduleError
from ansorpy.ir.builders import minimum
from ansorpy.ir.expr import Expr, Load, Var
from ansorpy.ir.interpret import run_program
from ansorpy.ir.interpret.races import Race
from ansorpy.ir.loops import Buffer, For, ForKind, If, Let, Program, Seq, Stmt, walk_stmts
from ansorpy.ir.prove import conflicting_loops
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.printer import text
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.programs import at, buffer, nest, program, put
from tests.conftest import session_seed
from tests.properties.random_dags import random_state
from tests.properties.random_operators import random_definition

TARGET = Target.parse("x86-64-v3")


def scaled(n: int, m: int, rows: int, columns: int) -> Program:
    """``Y = 2 X`` in shifted tiles of rows and columns, in parallel."""
    x = placeholder((n, m), name="X")
    y = compute((n, m), lambda i, j: x[i, j] * 2.0, name="Y")
    state, (i0, i1) = State.initial([x, y]).split("Y", "i", (rows,), tail="shift")
    state, (j0, j1) = state.split("Y", "j", (columns,), tail="shift")
    state = state.reorder("Y", [i0, j0, i1, j1])
    return lower(state.parallel("Y", [i0, j0], count=2)).run


class _OnBlocks(Rewriter):
    """Parallel loops as blocks of a GPU, which may not even write equal values at once."""

    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        if isinstance(new, For) and new.kind is ForKind.PARALLEL:
            return For(new.var, new.extent, ForKind.BLOCK_X, new.body)
        return new


def flattened(source: Program) -> Program:
    """*source* with each nest of parallel loops as one, and that as blocks."""
    body = _Collapsed().stmt(source.body)
    return source.with_body(_OnBlocks().stmt(body))


class _Collapsed(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        loops: list[For] = []
        body = s
        while isinstance(body, For) and body.kind is ForKind.PARALLEL:
            loops.append(body)
            body = body.body
        if len(loops) < 2:
            return super().stmt(s)
        flat, total, step = Var("flat"), 1, 1
        for loop in reversed(loops):
            body = Let(loop.var, flat // step % loop.extent, body)
            step *= loop.extent
        total = step
        return For(flat, total, ForKind.PARALLEL, body)


def run(source: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = [
        rng.integers(-8, 9, p.buffer.shape).astype(p.buffer.dtype.numpy) for p in source.params
    ]
    run_program(source, arrays)
    return arrays


def test_a_shifted_tile_stores_what_the_tile_before_it_left() -> None:
    expected = """\
kernel(X: input float32[13, 20], Y: output float32[13, 20])
  for i.0 in 0..3  # parallel
    i.start = min(i.0 * 5, 8)
    if i.0 * 5 <= 8
      for i.1 in 0..5
        for j.1 in 0..20
          Y[i.start + i.1, j.1] = X[i.start + i.1, j.1] * 2.0
    else
      for i.1 in 0..5
        for j.1 in 0..20
          if i.start + i.1 >= i.0 * 5
            Y[i.start + i.1, j.1] = X[i.start + i.1, j.1] * 2.0
"""
    assert text(stored_once(scaled(13, 20, 5, 20))).rstrip() == expected.rstrip()


@pytest.mark.parametrize("sizes", [(13, 20, 5, 8), (7, 7, 4, 3), (1, 17, 1, 16), (9, 9, 9, 4)])
def test_tiles_of_two_axes(sizes: tuple[int, int, int, int]) -> None:
    source = scaled(*sizes)
    owned = stored_once(source)
    assert conflicting_loops(source) and not conflicting_loops(owned)
    with pytest.raises(Race):
        run(flattened(source))
    for want, got in zip(run(source), run(flattened(owned)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_tiles_that_divide_their_axis_stay() -> None:
    source = scaled(15, 16, 5, 8)
    assert stored_once(source) is source and not conflicting_loops(source)


def random_program(rng: np.random.Generator) -> Program:
    if rng.random() < 0.7:
        return lower(random_state(rng, 14)).run
    task = Task(random_definition(rng), TARGET, 3)
    sketch = SketchSampler(task, CPU).draw_one(rng)
    table = sketch.sample(16, rng)
    rows = table[sketch.valid(table)]
    if not len(rows):
        raise ScheduleError("no row is valid")
    return lower(sketch.resolve(rows[0])).run


def parallel_programs(rng: np.random.Generator, count: int) -> Iterator[Program]:
    while count:
        try:
            source = promote(random_program(rng), TARGET)
        except ScheduleError:
            continue
        loops = [s for s in walk_stmts(source.body) if isinstance(s, For)]
        if any(loop.kind is ForKind.PARALLEL for loop in loops):
            count -= 1
            yield source


def test_random_programs_store_each_element_once(request: pytest.FixtureRequest) -> None:
    changed = 0
    for source in parallel_programs(np.random.default_rng(session_seed(request.config)), 25):
        owned = stored_once(source)
        assert not conflicting_loops(owned), text(owned)
        if owned is not source:
            changed += 1
            for want, got in zip(run(source), run(flattened(owned)), strict=True):
                np.testing.assert_array_equal(got, want, text(owned))
    assert changed


A, B = buffer("A", 12), buffer("B", 12)


def tiles(body: object, extent: int = 3) -> Program:
    assert callable(body)
    i, start = Var("i"), Var("start")
    loop = For(i, extent, ForKind.PARALLEL, Let(start, minimum(i * 5, 7), body(i, start)))
    return program(loop, [A], [B])


def halves(i: Var, start: Var) -> Stmt:
    return nest("s5", lambda r: put(B, (start + r,), at(A, start + r)))


def read_again(i: Var, start: Var) -> Stmt:
    """What a tile stored, it reads: it must have stored all of it itself."""
    again = nest("s5", lambda r: put(B, (start + r,), at(B, start + r) * 2.0))
    return Seq((halves(i, start), again))


def neighbours(i: Var, start: Var) -> Stmt:
    """Each iteration also reads what the next one stores."""
    return put(B, (i,), at(B, i + 1))


def of_data(i: Var, start: Var) -> Stmt:
    return put(B, (Load(Buffer("at", (3,), start.dtype, A.scope), (i,)),), at(A, i))


def test_what_is_read_again_is_stored_by_every_tile() -> None:
    source = tiles(read_again)
    assert stored_once(source) is source and conflicting_loops(source)


@pytest.mark.parametrize("body", [neighbours, of_data])
def test_conflicts_and_what_isl_cannot_decide_are_found(body: object) -> None:
    assert conflicting_loops(stored_once(tiles(body)))


def test_only_iterations_of_one_execution_conflict() -> None:
    """The same elements in the next iteration of a loop outside."""
    body = nest("s4 p12", lambda t, i: put(B, (i,), at(A, i) + at(A, t)))
    assert not conflicting_loops(program(body, [A], [B]))


def test_conditions_keep_iterations_apart() -> None:
    def body(i: Var) -> Stmt:
        even = put(B, (i,), at(A, i))
        odd: Expr = (i % 2).equal(1)
        return Seq((even, If(odd, put(B, (i - 1,), at(A, i)), None)))

    assert conflicting_loops(program(nest("p12", body), [A], [B]))

    def apart(i: Var) -> Stmt:
        is_odd: Expr = (i % 2).equal(1)
        return If(is_odd, Seq((put(B, (i,), at(A, i)), put(B, (i - 1,), at(A, i)))), None)

    assert not conflicting_loops(program(nest("p12", apart), [A], [B]))
