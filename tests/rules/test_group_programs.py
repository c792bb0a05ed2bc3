"""Whatever the rules make of products for warpgroups computes them; what is missing is found."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.strategies import integers, sampled_from

from ansorpy.errors import LoweringError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import (
    Async,
    Barrier,
    Commit,
    Fence,
    For,
    ForKind,
    Instruction,
    Program,
    Scope,
    Seq,
    Stmt,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import Tensor
from ansorpy.ir.verify import verify
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.stage import FuseRelation
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests.budget import examples, pairs
from tests.faults import Less
from tests.proved import assert_proved
from tests.tensor_cores import (
    GPU,
    HOPPER,
    LARGE,
    arguments,
    matmul,
    sketches,
    tolerance,
    turned,
    values,
    wgmma_sketches,
)


def check(tensors: Sequence[Tensor], program: Program, rng: np.random.Generator) -> None:
    """Assert that *program* multiplies by warpgroups and computes *tensors*."""
    verify(program)
    used = [s.name for s in walk_stmts(program.body) if isinstance(s, Instruction)]
    assert used and all(name.startswith("wgmma") for name in used)
    assert_proved(Lowered(program, None))
    data = values(tensors, rng)
    (want,) = run_dag(ComputeDAG.of(tensors), data, dtype=DType.FLOAT64)
    arrays = arguments(program, data)
    run_program(program, arrays)
    got = arrays[-1].astype(np.float64)
    atol = tolerance(tensors, want)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=atol)


def fitting(sketch: PlacedSketch, rng: np.random.Generator, n: int = 16) -> np.ndarray:
    table = sketch.sample(n, rng)
    both = np.concatenate((table, sketch.mutate(table, rng)))
    return np.asarray(both[sketch.valid(both)])


@pytest.mark.parametrize(("name", "number"), pairs(LARGE, range(2)))
def test_random_programs_compute_the_definition(
    name: str, number: int, rng: np.random.Generator
) -> None:
    found = wgmma_sketches(LARGE[name], rng)
    sketch = found[number % len(found)]
    check(LARGE[name], lower(sketch.resolve(fitting(sketch, rng)[0])).run, rng)


@pytest.mark.parametrize("kind, parts, part", [("float16", 4, 80), ("bfloat16", 2, 133)])
def test_parts_of_a_product_start_anywhere_in_it(
    kind: str, parts: int, part: int, rng: np.random.Generator
) -> None:
    tensors = turned(kind, 61, 20, parts * part, left=True)
    split = [s for s in wgmma_sketches(tensors, rng) if "rfactor" in str(s.placed.history)]
    assert split
    check(tensors, lower(split[0].resolve(fitting(split[0], rng)[0])).run, rng)


@examples(12)
@given(
    kind=sampled_from(["float16", "bfloat16"]), n=integers(40, 140), m=integers(10, 90),
    k=integers(8, 90), across=integers(0, 2), seed=integers(0, 2**31),
)  # fmt: skip
def test_products_of_any_shape_and_order(
    kind: str, n: int, m: int, k: int, across: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = turned(kind, n, m, k, left=across == 2) if across else matmul(kind, n, m, k)
    found = wgmma_sketches(tensors, rng)
    assume(found)
    check(tensors, lower(found[0].resolve(fitting(found[0], rng)[0])).run, rng)


def test_they_are_an_alternative_where_the_target_has_them(rng: np.random.Generator) -> None:
    tensors = matmul("float16", 256, 256, 64)
    assert not [s for s in sketches(tensors, rng, GPU) if "wgmma" in str(s.placed.history)]
    found = [str(s.placed.history) for s in sketches(tensors, rng, HOPPER)]
    assert sum("mma.m16n8" in history for history in found) == 1
    assert sum("wgmma.m64n256" in history for history in found) == 1
    assert sum("wgmma.m64n128" in history for history in found) == 1
    # A few rows would fill a sixteenth of 64.
    assert not wgmma_sketches(matmul("float16", 8, 8, 64), rng)


@pytest.mark.parametrize("kind", ["int8", "tf32"])
def test_what_instructions_cannot_turn_is_turned_as_it_is_copied(
    kind: str, rng: np.random.Generator
) -> None:
    """Neighbouring threads read neighbours in memory, and write vectors along the reduction."""
    sketch = wgmma_sketches(matmul(kind, 128, 64, 64), rng)[0]
    state = sketch.resolve(fitting(sketch, rng)[0])
    fused = {
        stage.name: [r.parents for r in stage.relations if isinstance(r, FuseRelation)]
        for stage in state.stages
    }
    assert [axis.name for axis in state.stage("B.shared").compute.axes] == ["j", "k"]
    across = "j.0" if kind == "int8" else "j"  # four bytes are read at once
    assert fused["A.shared"] == [("i", "k.0")] and fused["B.shared"] == [("k.0", across)]


class _Without(Rewriter):
    """Leaves out fences of one memory."""

    def __init__(self, scope: Scope):
        super().__init__()
        self.scope = scope

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        return Seq(()) if isinstance(s, Fence) and s.scope is self.scope else s


@cache
def a_product(depth: int, boxes: int = 0) -> tuple[list[Tensor], Program]:
    """Two warpgroups, five steps of the reduction, *depth* tiles at once; it is checked.

    With *boxes*, the copy engine fills the tiles.
    """
    tensors, rng = matmul("float16", 128, 32, 80), np.random.default_rng(depth)
    sketch = wgmma_sketches(tensors, rng)[0]
    given = {"C.warp.i/1": 2, "C.warp.i/2": 1, "C.warp.j/1": 1, "C.warp.j/2": 1, "C.warp.k/1": 1}
    given |= {"C.warp.pipeline": depth, "A.shared.bulk": boxes, "B.shared.bulk": boxes}
    row = [given.get(name, 8) for name in sketch.columns]
    assert sketch.space.contains(np.array(row))
    program = lower(sketch.resolve(row)).run
    check(tensors, program, rng)
    return tensors, program


FAULTS = [
    (Less(Barrier, 2), "two threads access"),
    (_Without(Scope.SHARED), r"no fence\(shared\) follows the write to"),
    (_Without(Scope.WARP), r"no fence\(warp\) follows the write to"),
    (Less(Wait, of=Async.PRODUCTS), "instruction"),
    (Less(Commit, 1, Async.PRODUCTS), "instruction"),
]


@pytest.mark.parametrize(
    ("depth", "fault", "found"),
    [(depth, *fault) for fault, depth in pairs(FAULTS, (1, 2, 3, 4))],
)
def test_what_is_missing_is_found(
    depth: int, fault: Rewriter, found: str, rng: np.random.Generator
) -> None:
    tensors, program = a_product(depth)
    wrong = program.with_body(deepcopy(fault).stmt(program.body))
    with pytest.raises(LoweringError, match=found):
        run_program(wrong, arguments(wrong, values(tensors, rng)))


BOXED_FAULTS = [f for f in FAULTS if not isinstance(f[0], _Without) or f[0].scope is Scope.WARP]


@pytest.mark.parametrize(
    ("depth", "fault", "found"),
    [(depth, *fault) for fault, depth in pairs(BOXED_FAULTS, (1, 2, 3, 4))],
)
def test_what_is_missing_is_found_where_boxes_are_copied(
    depth: int, fault: Rewriter, found: str, rng: np.random.Generator
) -> None:
    tensors, program = a_product(depth, boxes=1)
    wrong = program.with_body(deepcopy(fault).stmt(program.body))
    with pytest.raises(LoweringError, match=found):
        run_program(wrong, arguments(wrong, values(tensors, rng)))


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_boxes_need_no_fence_but_their_barrier(depth: int) -> None:
    """The copy engine writes as instructions read; filled at once, tiles keep the usual fence."""
    _, program = a_product(depth, boxes=1)
    fences = [s.scope for s in walk_stmts(program.body) if isinstance(s, Fence)]
    assert (Scope.SHARED in fences) is (depth == 1)
    loops = [s for s in walk_stmts(program.body) if isinstance(s, For) and s.kind is ForKind.BULK]
    assert {s.extent for s in loops} == {16, 32, 128}


@pytest.mark.parametrize("boxes", [0, 1])
@pytest.mark.parametrize("depth", [2, 3])
def test_copies_that_are_not_waited_for_are_found(
    depth: int, boxes: int, rng: np.random.Generator
) -> None:
    tensors, program = a_product(depth, boxes)
    wrong = program.with_body(Less(Wait, 1, Async.COPIES).stmt(program.body))
    with pytest.raises(LoweringError, match="before waiting for the copy to it"):
        run_program(wrong, arguments(wrong, values(tensors, rng)))


class _Further(Rewriter):
    """Lets every wait for instructions leave one more under way."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if isinstance(s, Wait) and s.kind is Async.PRODUCTS:
            return Wait(s.kind, s.pending + 1)
        return s


def test_tiles_must_not_be_overwritten_while_they_are_read(rng: np.random.Generator) -> None:
    tensors, program = a_product(3)
    wrong = program.with_body(_Further().stmt(program.body))
    with pytest.raises(LoweringError, match="is written while an instruction may still read it"):
        run_program(wrong, arguments(wrong, values(tensors, rng)))


def test_one_group_is_under_way_while_the_next_tiles_are_copied() -> None:
    waits = {
        depth: [
            s.pending for s in walk_stmts(a_product(depth)[1].body)
            if isinstance(s, Wait) and s.kind is Async.PRODUCTS
        ]
        for depth in (1, 2, 3, 4)
    }  # fmt: skip
    assert waits == {1: [0], 2: [0], 3: [1, 0], 4: [1, 0]}


def test_records_replay(rng: np.random.Generator) -> None:
    sketch = wgmma_sketches(LARGE["even"], rng)[0]
    bound = sketch.resolve(fitting(sketch, rng)[0])
    again = State.replay(bound.definition, steps_from_json(steps_to_json(bound.history)))
    assert again.text() == bound.text() and str(again.history) == str(bound.history)
