"""Boxes that the copy engine copies, as C text: run on the host, and compiled for sm_90a."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.emit.program import CudaSource, emit_cuda
from ansorpy.codegen.cuda.launch.plan import BoxedTensor
from ansorpy.codegen.cuda.launch.resources import parse_report
from ansorpy.errors import CodegenError
from ansorpy.ir.expr import Const, Expr, Select
from ansorpy.ir.loops import Async, AsyncCopy, Program, Stmt, Wait
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from tests.budget import pairs
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import needs_compiler
from tests.codegen.cuda.products import assert_text_computes
from tests.conftest import session_seed
from tests.proved import assert_proved
from tests.tensor_cores import HOPPER, LARGE, matmul, turned, wgmma_sketches

WORKLOADS = {
    **{name: LARGE[name] for name in ("even", "short", "both_across", "batch", "heads")},
    "bytes": turned("int8", 64, 70, 80, left=False),
    "wide": matmul("float16", 64, 264, 40),
    "deep": matmul("bfloat16", 66, 16, 136),
    "parts": turned("float16", 62, 24, 4 * 80, left=True),
}


SHARED = {
    "rows": matmul("float16", 250, 80, 104),
    "across": turned("float16", 256, 72, 72, left=True),
    "along": turned("int8", 256, 48, 96, left=False),
    "batch": LARGE["batch"],
    "odd": matmul("float16", 190, 48, 56),
}


def boxed(sketch: PlacedSketch, rng: np.random.Generator, *, small: bool = False) -> np.ndarray:
    """A random row whose tiles are all copied as boxes; with *small* tiles of many blocks."""
    table = sketch.sample(64, rng)
    table[:, [name.endswith(".bulk") for name in sketch.columns]] = 1
    if small:
        outer = [name in ("C.warp.i/1", "C.warp.i/2", "C.warp.j/1") for name in sketch.columns]
        table[:, outer] = 1
    return np.asarray(table[sketch.valid(table)][0])


def shared(sketch: PlacedSketch, rng: np.random.Generator) -> State:
    """A random schedule in which pairs of blocks share what both copy."""
    state = sketch.resolve(boxed(sketch, rng, small=True))
    for name in [stage.name for stage in state.stages if stage.swizzle]:
        state = state.bulk(name, 2)
    return state


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> dict[str, tuple[Program, CudaSource]]:
    """A random program of each case, and its text."""
    rng = np.random.default_rng(session_seed(request.config))
    found: dict[str, tuple[Program, CudaSource]] = {}
    for name, number in pairs(WORKLOADS, range(2)):
        made = wgmma_sketches(WORKLOADS[name], rng)
        split = [s for s in made if "rfactor" in str(s.placed.history)]
        some = split if name == "parts" else made
        sketch, symbol = some[number % len(some)], f"{name}_{number}"
        program = lower(sketch.resolve(boxed(sketch, rng))).run
        assert_proved(Lowered(program, None))
        found[symbol] = program, emit_cuda(program, HOPPER, symbol)
    return found


@needs_compiler
def test_the_text_computes_what_the_program_does(
    drawn: dict[str, tuple[Program, CudaSource]], tmp_path: Path, rng: np.random.Generator
) -> None:
    assert all("copies.box<" in source.kernels for _, source in drawn.values())
    assert_text_computes(drawn, WORKLOADS, "boxes", tmp_path, rng)


@needs_compiler
def test_neighbouring_blocks_share_what_both_copy(tmp_path: Path, rng: np.random.Generator) -> None:
    found: dict[str, tuple[Program, CudaSource]] = {}
    for name in SHARED:
        sketch = wgmma_sketches(SHARED[name], rng)[0]
        program = lower(shared(sketch, rng)).run
        source = emit_cuda(program, HOPPER, f"{name}_0")
        found[f"{name}_0"] = program, source
        pairs = "__cluster_dims__(2, 1, 1)" in source.kernels
        if name in ("rows", "across", "along", "odd"):
            assert pairs is (name != "odd"), source.kernels
        assert pairs is ("sync_cluster();" in source.kernels)
        assert not (pairs and "__syncthreads();" in source.kernels)
    assert_text_computes(found, SHARED, "boxes", tmp_path, rng)


@needs_nvrtc
def test_clusters_compile(rng: np.random.Generator) -> None:
    sketch = wgmma_sketches(SHARED["rows"], rng)[0]
    program = lower(shared(sketch, rng)).run
    cubin, report = compile_source(emit_cuda(program, HOPPER, "kernel").text, HOPPER)
    assert cubin and "serialized" not in report


@needs_nvrtc
def test_programs_compile_and_instructions_overlap(
    drawn: dict[str, tuple[Program, CudaSource]],
) -> None:
    for symbol, (_, source) in drawn.items():
        cubin, report = compile_source(source.text, HOPPER)
        assert cubin and "serialized" not in report, f"{symbol}: {report}"
        assert all(found.spilled_bytes == 0 for found in parse_report(report, source.plan))


def a_program(depth: int = 3) -> Program:
    rng = np.random.default_rng(3)
    sketch = wgmma_sketches(matmul("float16", 128, 128, 256), rng)[0]
    given = {"C.warp.i/1": 1, "C.warp.i/2": 1, "C.warp.j/1": 1, "C.warp.j/2": 1, "C.warp.k/1": 4}
    given |= {"C.warp.pipeline": depth, "A.shared.bulk": 1, "B.shared.bulk": 1}
    row = [given.get(name, 8) for name in sketch.columns]
    assert sketch.space.contains(np.array(row))
    return lower(sketch.resolve(row)).run


def test_tensors_become_maps_and_tiles_of_several_parts_several_boxes() -> None:
    source = emit_cuda(a_program(), HOPPER, "kernel")
    maps = {a.name: a.boxes for a in source.plan.launches[0].arguments if a.boxes is not None}
    assert maps == {
        "A": BoxedTensor(2, (128, 256), (64, 64), 128),
        "B": BoxedTensor(2, (256, 128), (64, 64), 128),
    }
    # Filled before the loop and in it: one part of 128 bytes of A, two of B.
    assert source.kernels.count("(A_boxes, ") == 2 and source.kernels.count("(B_boxes, ") == 4
    assert "copy_async" not in source.text and "fence_shared();\n    __sync" not in source.kernels


class _Masked(Rewriter):
    """Lets half of each box be zeros."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if not isinstance(s, AsyncCopy):
            return s
        zero: Expr = Const(0.0, s.buffer.dtype)
        value = s.value.then if isinstance(s.value, Select) else s.value
        return replace(s, value=Select(s.indices[-1] < 8, value, zero))


class _Zeros(Rewriter):
    """Lets all of each box be zeros."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        return replace(s, value=Const(0.0, s.buffer.dtype)) if isinstance(s, AsyncCopy) else s


class _Later(Rewriter):
    """Lets waits leave many groups in flight."""

    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        return replace(s, pending=9) if isinstance(s, Wait) and s.kind is Async.COPIES else s


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_Masked(), "a box of [AB] is copied under a condition"),
        (_Zeros(), "is filled by a copy of no tensor"),
        (_Later(), "leaves 9 groups of boxes in flight, more than the limit of 6"),
    ],
)
def test_what_the_copy_engine_cannot_do_is_refused(fault: Rewriter, message: str) -> None:
    program = a_program()
    with pytest.raises(CodegenError, match=message):
        emit_cuda(program.with_body(fault.stmt(program.body)), HOPPER, "kernel")
