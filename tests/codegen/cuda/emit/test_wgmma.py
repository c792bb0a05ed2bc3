"""Programs for instructions of warpgroups as C text: run on the host, and compiled for sm_90a."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.emit.program import CudaSource, emit_cuda
from ansorpy.codegen.cuda.launch.resources import parse_report
from ansorpy.errors import CodegenError
from ansorpy.ir.loops import Buffer, Program
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import Tensor
from ansorpy.schedule.lowering.program import lower
from tests.budget import explores
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import needs_compiler
from tests.codegen.cuda.products import assert_text_computes
from tests.conftest import session_seed
from tests.rules.attentions import attend
from tests.tensor_cores import (
    HOPPER,
    LARGE,
    matmul,
    wgmma_sketches,
)

COMPILED = ["even", "odd", "half_sums", "bytes", "mixed", "tf32", "activated", "convolution"]
"""One of each type at least."""
ATTENTION = attend(1, 101, 187, 40, 24, dtype="float16")


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> dict[str, tuple[Program, CudaSource]]:
    """A random program of each case, of its sketches in turn, and its text."""
    rng, found = (
        np.random.default_rng(session_seed(request.config)),
        dict[str, tuple[Program, CudaSource]](),
    )
    for n, (name, tensors) in enumerate(LARGE.items()):
        sketches = wgmma_sketches(tensors, rng)
        sketch = sketches[n % len(sketches)]
        table = sketch.sample(32, rng)
        rows = table[sketch.valid(table)]
        program, symbol = lower(sketch.resolve(rows[0])).run, f"{name}_{n}"
        found[symbol] = program, emit_cuda(program, HOPPER, symbol)
    assert {symbol.rsplit("_", 1)[0] for symbol in found} == LARGE.keys()
    return found


@needs_compiler
def test_the_text_computes_what_the_program_does(
    drawn: dict[str, tuple[Program, CudaSource]], tmp_path: Path, rng: np.random.Generator
) -> None:
    assert_text_computes(drawn, LARGE, "wgmma_", tmp_path, rng)


@needs_nvrtc
def test_programs_compile_and_instructions_overlap(
    drawn: dict[str, tuple[Program, CudaSource]],
) -> None:
    for symbol, (_, source) in drawn.items():
        if not (explores() or symbol.rsplit("_", 1)[0] in COMPILED):
            continue
        cubin, report = compile_source(source.text, HOPPER)
        assert cubin and "serialized" not in report, f"{symbol}: {report}"
        assert all(found.spilled_bytes == 0 for found in parse_report(report, source.plan))


@pytest.fixture(scope="module")
def attentions(request: pytest.FixtureRequest) -> dict[str, tuple[Program, CudaSource]]:
    """Random programs of attention whose exponentials are factors in registers."""
    rng = np.random.default_rng(session_seed(request.config))
    found: dict[str, tuple[Program, CudaSource]] = {}
    for sketch in wgmma_sketches(ATTENTION, rng):
        table = sketch.sample(32, rng)
        row, symbol = table[sketch.valid(table)][0], f"attention_{len(found)}"
        program = lower(sketch.resolve(row)).run
        found[symbol] = program, emit_cuda(program, HOPPER, symbol)
    assert len(found) == 2
    return found


@needs_compiler
def test_factors_in_registers_do_not_change_while_they_are_read(
    attentions: dict[str, tuple[Program, CudaSource]], tmp_path: Path, rng: np.random.Generator
) -> None:
    workloads = {"attention": ATTENTION}
    assert_text_computes(attentions, workloads, "wgmma_", tmp_path, rng, 3e-3)
    assert all("_hc_" in source.kernels for _, source in attentions.values())


@needs_nvrtc
def test_attention_compiles_without_spilling(
    attentions: dict[str, tuple[Program, CudaSource]],
) -> None:
    for symbol, (_, source) in attentions.items():
        cubin, report = compile_source(source.text, HOPPER)
        assert cubin and "serialized" not in report, f"{symbol}: {report}"
        assert all(found.spilled_bytes == 0 for found in parse_report(report, source.plan))


def a_program(boxes: int = 0) -> Program:
    rng = np.random.default_rng(7)
    sketch = wgmma_sketches(matmul("float16", 128, 64, 64), rng)[0]
    table = sketch.sample(16, rng)
    table[:, [name.endswith(".bulk") for name in sketch.columns]] = boxes
    return lower(sketch.resolve(table[sketch.valid(table)][0])).run


class _Laid(Rewriter):
    """Gives swizzled tiles parts of other sizes."""

    def __init__(self, part: int) -> None:
        super().__init__()
        self.part = part
        self.made: dict[Buffer, Buffer] = {}

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        if not isinstance(source, Buffer) or not source.swizzle:
            return source
        new = Buffer(source.name, source.shape, source.dtype, source.scope, swizzle=self.part)
        return self.made.setdefault(source, new)


@pytest.mark.parametrize("part", [0, 16, 48])
def test_tiles_must_be_laid_out_as_descriptors_say(part: int) -> None:
    program = a_program()
    with pytest.raises(CodegenError, match="the layout of .* is not one"):
        emit_cuda(program.with_body(_Laid(part).stmt(program.body)), HOPPER, "kernel")


def test_swizzled_tiles_start_where_their_pattern_does() -> None:
    text = emit_cuda(a_program(), HOPPER, "kernel").kernels
    assert "__align__(1024)" in text and "swizzled<" in text
    assert text.index("fence_shared();") < text.rindex("__syncthreads();")
    assert text.index("wait_products<0>();") < text.index("settled(C_warp);")
