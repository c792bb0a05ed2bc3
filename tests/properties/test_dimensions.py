"""Random definitions with dimensions under random schedules: one program for every size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.errors import ScheduleError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Const, as_expr, walk
from ansorpy.ir.loops import For, Program, expressions, walk_stmts
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.schedule.lowering.program import Lowered, lower
from tests.budget import examples
from tests.properties.random_dags import drawn_sizes, random_sized_state
from tests.properties.random_elements import TYPES, random_values
from tests.properties.test_schedules import interpreted, is_legal
from tests.proved import assert_proved
from tests.rounding import Reference
from tests.run_native import run_native


def multiplies_sizes(program: Program) -> bool:
    """True if isl cannot represent some index or extent: a product or a quotient of sizes."""
    roots = [e for s in walk_stmts(program.body) for e in expressions(s)]
    roots += [as_expr(s.extent) for s in walk_stmts(program.body) if isinstance(s, For)]
    return any(
        isinstance(e, Binary)
        and e.op in (BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
        and not any(isinstance(x, Const) for x in (e.a, e.b))
        and e.dtype is DType.INT64
        for root in roots
        for e in walk(root)
    )


@examples(60)
@given(seed=integers(0, 2**32 - 1))
def test_one_program_computes_its_definition_at_every_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = random_sized_state(rng, int(rng.integers(1, 14)), TYPES)
    try:
        lowered = lower(state)
    except ScheduleError:
        assert not is_legal(state)
        return  # a place or a packing that is not legal, or an extent that must be a number
    proof = proof_of(lowered)
    assert not proof.refuted, proof.refuted[0]
    if not multiplies_sizes(lowered.run):
        assert is_legal(state)
        assert proof.is_decided, proof.undecided[0]
    for _ in range(3):
        sizes = drawn_sizes(state.definition.dims, rng)
        dag = dag_at(state.definition, sizes)
        reference = Reference(dag, random_values(dag, rng))
        if reference.reason:
            continue
        data = dict(reference.data)
        here = Lowered(program_at(lowered.run, sizes), lowered.bind)
        assert_proved(here)
        assert max(reference.shares(interpreted(here, data), dag)) <= 1, (sizes, state)
        native = run_native(lowered, data, sizes=sizes)
        assert max(reference.shares(native, dag)) <= 1, (sizes, state)
