from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, AxisKind, Call, Function, Reduce, ReduceKind, Select, Var, const
from ansorpy.ir.intrinsics import MMA_SYNC
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    If,
    Instruction,
    Let,
    Param,
    Prefetch,
    Program,
    Role,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
)
from ansorpy.ir.tensor import placeholder
from ansorpy.ir.verify import verify
from tests.ir.interpret.nests import buffer, load, loops, lower_plainly, program
from tests.ir.workloads import ALL

i, j = Var("i"), Var("j")
OUT, IN = buffer("out", 8), buffer("x", 8)
TMP = buffer("tmp", 4, scope="local")
ONE = const(1.0, DType.FLOAT32)
GOOD = Store(OUT, (i,), load(IN, i), None)
SPACE = Axis("a", 4, AxisKind.REDUCE)
MMA = MMA_SYNC[0].name


@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("make", ALL)
def test_plain_lowerings_are_well_formed(make: Callable[[], ComputeDAG], kind: str) -> None:
    verify(lower_plainly(make(), kind))


def nest(body: Stmt, kind: str = "serial") -> Stmt:
    return loops(body, (i, 8, kind))


BAD: list[tuple[Stmt, str]] = [
    (GOOD, r'i is not bound here in "out\[i\] = x\[i\]"'),
    (nest(nest(GOOD)), "i is bound twice"),
    (loops(GOOD, (i, 0, "serial")), "the loop over i has extent 0"),
    (nest(Store(OUT, (i, i), ONE, None)), "out has 1 dimensions, got 2"),
    (nest(Store(OUT, (i + 8,), ONE, None)), r"out is accessed at 8\.\.15 in dimension 0"),
    (nest(Store(OUT, (i - 8,), ONE, None)), r"out is accessed at -8\.\.-1"),
    (nest(Store(OUT, (i,), load(IN, i + 9), None)), "x is accessed at"),
    (nest(Store(OUT, (i,), const(1), None)), "the value stored to out is int64, not float32"),
    (nest(Store(IN, (i,), ONE, None)), "x is written but is not an output"),
    (nest(Store(TMP, (i,), ONE, None)), "tmp is not declared here"),
    (Alloc(TMP, Alloc(TMP, nest(GOOD))), "tmp is declared twice"),
    (Alloc(buffer("g", 4), nest(GOOD)), "g is allocated in global memory"),
    (Alloc(buffer("g", 0, scope="local"), nest(GOOD)), r"g has shape \(0,\)"),
    (nest(If(load(IN, i), GOOD, None)), "the condition is float32, not bool"),
    (nest(Let(j, load(IN, i), GOOD)), "j is float32, not int64"),
    (nest(Store(OUT, (i,), load(IN, i) + load(IN, j), None)), "j is not bound here"),
    (nest(Store(OUT, (i,), Call(Function.EXP, (ONE, ONE)), None)), "exp takes 1 operands, got 2"),
    (nest(Store(OUT, (i,), Call(Function.BITS, (const(1),)), None)), "bits of int64 values is not"),
    (nest(Store(OUT, (i,), Reduce(ReduceKind.SUM, ONE, (SPACE,)), None)), "a reduction is left"),
    (nest(Store(OUT, (i,), placeholder((8,), name="t")[i], None)), "t is a tensor, not a buffer"),
    (nest(Store(OUT, (load(IN, i),), ONE, None)), "out is indexed with a float32"),
    (nest(Barrier(Scope.SHARED)), "a barrier is outside of every block and thread loop"),
    (nest(Barrier(Scope.LOCAL), "threadIdx.x"), "no barrier for local memory"),
    (nest(Prefetch(TMP, i)), "tmp is not declared here"),
    (nest(Prefetch(IN, load(IN, i))), "the offset is float32, not int64"),
    (nest(Shuffle(OUT, (i,), ONE, 1)), "values is outside of every block and thread loop"),
    (nest(Shuffle(OUT, (i,), ONE, 3), "threadIdx.x"), "the distance 3 is not one of"),
    (nest(Shuffle(OUT, (i,), const(1), 1), "threadIdx.x"), "the value stored to out is int64"),
    (Instruction("nop", ()), "an instruction has no operands"),
    (nest(Instruction("f", ((IN, (i,)),))), "x is written but is not an output"),
    (nest(Instruction("vnni.dot_16x4", ((OUT, (i,)),))), "takes 3 operands, got 1"),
    (nest(Instruction(MMA, ((OUT, (i,)),) * 2), "threadIdx.x"), "takes 3 operands, got 2"),
    (nest(Instruction(MMA, ((OUT, (i,)),) * 3)), "cannot be operand c of mma"),
    (loops(GOOD, (Var("a"), 2, "parallel"), (Var("b"), 2, "serial"), (i, 8, "parallel")),
     "the parallel loop over i is inside a loop of another kind"),
    (loops(GOOD, (Var("a"), 2, "parallel"), (i, 8, "threadIdx.x")), "inside a parallel loop"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), BAD)
def test_what_is_not_well_formed_is_refused(body: Stmt, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        verify(program(body, [IN], [OUT]))


def test_parameters_are_global_and_in_calling_order() -> None:
    with pytest.raises(LoweringError, match="inputs, then constants, then outputs"):
        verify(Program("p", (Param(OUT, Role.OUTPUT), Param(IN, Role.INPUT)), nest(GOOD)))
    with pytest.raises(LoweringError, match="parameter tmp is in local memory"):
        verify(Program("p", (Param(TMP, Role.INPUT),), Seq(())))
    with pytest.raises(LoweringError, match="x is declared twice"):
        verify(Program("p", (Param(IN, Role.INPUT), Param(IN, Role.CONSTANT)), Seq(())))


def test_what_bounds_cannot_decide_passes() -> None:
    verify(program(nest(If(i < 7, Store(OUT, (i + 1,), ONE, None), None)), [], [OUT]))


def test_a_side_that_is_never_chosen_may_read_beyond_the_end() -> None:
    verify(program(nest(Store(OUT, (i,), Select(i < 8, ONE, load(IN, i + 9)), None)), [IN], [OUT]))
    wrong = nest(Store(OUT, (i,), Select(i < 7, ONE, load(IN, i + 9)), None))
    with pytest.raises(LoweringError, match="x is accessed at"):
        verify(program(wrong, [IN], [OUT]))
