"""Programs for tensor cores as C text: run on the host, and compiled for GPUs that have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.emit.mma import function_name
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.passes.lower_fragments import held_by_lanes
from ansorpy.errors import CodegenError
from ansorpy.ir.fragments import fragment_registers
from ansorpy.ir.intrinsics import MMA_SYNC
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Instruction,
    Program,
    Scope,
    Stmt,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.strides import dense_strides
from ansorpy.ir.tensor import Tensor
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.budget import explores, some
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import needs_compiler
from tests.codegen.cuda.products import assert_text_computes
from tests.conftest import session_seed
from tests.tensor_cores import GPU, WORKLOADS, sketches

COMPILED = [
    "prime", "odd_bfloat16", "odd_tf32", "odd_int8", "mixed", "half_sums", "convolution",
    "deep_parts",
]  # fmt: skip
"""One of each type at least."""
OTHERS = [name for name in WORKLOADS if name not in (*COMPILED, "row", "column", "outer")]


def programs(seed: int) -> dict[str, Program]:
    """A random program of each workload and sketch."""
    rng, found = np.random.default_rng(seed), dict[str, Program]()
    for name in (*COMPILED, *some(OTHERS)):
        for sketch in sketches(WORKLOADS[name], rng):
            table = sketch.sample(16, rng)
            row = table[sketch.valid(table)][0]
            found[f"{name}_{len(found)}"] = lower(sketch.resolve(row)).run
    return found


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> dict[str, Program]:
    return programs(session_seed(request.config))


@needs_compiler
def test_the_text_computes_what_the_program_does(
    drawn: dict[str, Program], tmp_path: Path, rng: np.random.Generator
) -> None:
    texts = {symbol: (p, emit_cuda(p, GPU, symbol)) for symbol, p in drawn.items()}
    assert_text_computes(texts, WORKLOADS, "mma_", tmp_path, rng)


@needs_nvrtc
@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("sm_80", COMPILED if explores() else COMPILED[::2]),
        ("sm_90", COMPILED if explores() else COMPILED[1::2]),
    ],
)
def test_programs_compile(drawn: dict[str, Program], architecture: str, names: list[str]) -> None:
    for symbol, program in drawn.items():
        if symbol.rsplit("_", 1)[0] in names:
            code = build_cuda(program, Target.parse(architecture), symbol=symbol)
            assert code.cubin
            assert all(found.spilled_bytes == 0 for found in code.resources)


def a_program(name: str = "even") -> Program:
    rng = np.random.default_rng(7)
    (sketch, *_) = sketches(WORKLOADS[name], rng)
    table = sketch.sample(16, rng)
    return lower(sketch.resolve(table[sketch.valid(table)][0])).run


def test_each_lane_has_an_array_of_its_registers() -> None:
    program = a_program()
    held = held_by_lanes(program)
    before = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Alloc)]
    after = [s.buffer for s in walk_stmts(held.body) if isinstance(s, Alloc)]
    assert [b.name for b in before] == [b.name for b in after]
    for old, new in zip(before, after, strict=True):
        if old.scope is Scope.WARP:
            assert old.fragment is not None
            assert new.scope is Scope.LOCAL and new.size * 32 == old.size
            assert new.shape[-1] == fragment_registers(old.fragment)
        else:
            assert new is old
    text = emit_cuda(program, GPU, "kernel").kernels
    names = [s.name for s in walk_stmts(held.body) if isinstance(s, Instruction)]
    assert f"{function_name(names[-1])}(C_warp[" in text
    assert f"{function_name(names[0])}(A_warp[" in text and names[0].startswith("ldmatrix.a.")


class _Turned(Rewriter):
    """Binds the loops over lanes to each other's index."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        turned = {ForKind.THREAD_X: ForKind.THREAD_Y, ForKind.THREAD_Y: ForKind.THREAD_X}
        if isinstance(s, For) and s.kind in turned:
            return For(s.var, s.extent, turned[s.kind], s.body)
        return s


def test_rows_of_matrices_must_start_at_whole_vectors() -> None:
    program = a_program()
    with pytest.raises(CodegenError, match="rows of .* do not start at multiples of 16"):
        emit_cuda(program.with_body(_Unpadded().stmt(program.body)), GPU, "kernel")


class _Unpadded(Rewriter):
    """Moves the rows of shared tiles together, and one element apart."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[Buffer, Buffer] = {}

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        if not isinstance(source, Buffer) or source.scope is not Scope.SHARED:
            return source
        strides = dense_strides((*source.shape[:-1], source.shape[-1] + 1))
        new = Buffer(source.name, source.shape, source.dtype, source.scope, strides)
        return self.made.setdefault(source, new)


def test_lanes_that_reach_what_others_hold_are_refused() -> None:
    program = a_program()
    wrong = program.with_body(_Turned().stmt(program.body))
    with pytest.raises(
        CodegenError, match="cannot prove that each lane accesses only the elements of C.warp"
    ):
        emit_cuda(wrong, GPU, "kernel")


def test_every_instruction_has_a_name_in_c() -> None:
    names = [function_name(by.name) for by in MMA_SYNC]
    assert len(set(names)) == len(names)
    assert names[0] == "mma_m16n8k16_float32_float16_float16"
