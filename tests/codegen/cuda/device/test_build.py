"""Programs to cubins with NVRTC, which needs no GPU."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest

from ansorpy.codegen.cuda.device import nvrtc
from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.emit.prelude import HELPERS, prelude
from ansorpy.cost.analytic.gpu.kernel import gpu_seconds
from ansorpy.cost.nest_view import view_nest
from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Alloc, For, ForKind, Program, Scope
from ansorpy.ir.task import Task
from ansorpy.rules.algorithms.key_blocks import KeyBlocks
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.budget import pairs
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emit.test_expressions import SEEDS, expression
from tests.codegen.cuda.emit.test_vectorized import MAKERS
from tests.codegen.cuda.test_programs import reversed_rows, two_kernels
from tests.codegen.programs import at, buffer, program, put
from tests.rules.attentions import heads_attend

pytestmark = needs_nvrtc
SM_80, SM_90 = Target.parse("sm_80"), Target.parse("sm_90")


@pytest.mark.parametrize("target", [SM_80, SM_90], ids=lambda target: target.name)
def test_a_cubin_is_made_for_a_named_architecture(target: Target) -> None:
    code = build_cuda(reversed_rows(barrier=True), target, symbol="rows")
    assert code.cubin[:4] == b"\x7fELF" and b"rows" in code.cubin
    assert code.build_s > 0
    (launch,), (resources,) = code.plan.launches, code.resources
    assert launch.kernel == resources.kernel == "rows"
    assert resources.shared_bytes == launch.static_shared_bytes == 384
    assert 0 < resources.registers <= 255 and resources.spilled_bytes == 0
    # Both tables of the ELF file (where they start, bytes and number of entries) end inside it.
    for start, each, count in ((32, 54, 56), (40, 58, 60)):
        (begin,) = struct.unpack_from("<Q", code.cubin, start)
        (size,), (number,) = (struct.unpack_from("<H", code.cubin, n) for n in (each, count))
        assert 0 < begin + size * number <= len(code.cubin)


def test_a_silent_compiler_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(text: str, target: Target) -> tuple[bytes, str]:
        return compile_source(text, target)[0], "ptxas info    : 0 bytes gmem\n"

    monkeypatch.setattr("ansorpy.codegen.cuda.device.build.compile_source", silent)
    code = build_cuda(two_kernels(), SM_90, symbol="k")
    assert code.resources == () and len(code.plan.launches) == 3


def test_the_same_program_gives_the_same_bytes() -> None:
    first, second = (build_cuda(two_kernels(), SM_90, symbol="k") for _ in range(2))
    assert first.cubin == second.cubin and first.source == second.source
    assert [r.kernel for r in first.resources] == ["k_0", "k_1", "k_2"]


def test_random_expressions_and_vectors_compile() -> None:
    for seed in SEEDS[:3]:
        code = build_cuda(expression(seed)[0], SM_90, symbol=f"random{seed}")
        assert code.cubin[:4] == b"\x7fELF" and f"random{seed}".encode() in code.cubin
    for name, make in MAKERS.items():
        code = build_cuda(make(), SM_80, symbol=name)
        assert code.cubin[:4] == b"\x7fELF" and name.encode() in code.cubin


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a", "sm_120"])
def test_every_helper_compiles(name: str) -> None:
    calls = 'extern "C" __global__ void k(float* x, double* y) {\n' + "".join(
        f"  {line}\n"
        for line in (
            "x[0] = maximum<float>(x[1], minimum<float>(x[2], to_float(to_float16(x[3]))));",
            "y[0] = maximum<double>(y[1], scaled(y[2], y[3])) + scaled(x[5], x[6]);",
            "x[1] = dot_s8s8(word(1, 2, 3, 4), word(5, 6, 7, 8)) + dot_u8s8(9u, 10u);",
            "x[2] = dot_bf16(word(x[3], x[4]), 7u) + floor_mod<int>(-7, (int)x[4]);",
            "y[1] = to_int(x[1]) + to_long(y[2]) + to_unsigned_long(x[3]) + to_int(y[4]);",
            "x[3] = quotient<unsigned char>(7, (int)x[5]) + rest<unsigned>(9u, (unsigned)x[6]);",
            "vec<4>(&x[8]) = vec<4>((const float*)&x[12]);",
            "__shared__ float s[4]; copy_async(&vec<4>(s), &vec<4>(x + 4), x[0] > 1.0f);",
            "copy_async(&s[1], (const float*)x); commit_copies(); wait_copies<1>(); x[7] = s[2];",
        )
    )
    cubin, report = compile_source(f"{prelude(HELPERS)}\n{calls}}}\n", Target.parse(name))
    assert cubin[:4] == b"\x7fELF" and "registers" in report


def test_an_error_of_the_compiler_is_shown() -> None:
    with pytest.raises(CodegenError, match='(?s)NVRTC rejects .*identifier "missing" is undefined'):
        compile_source('extern "C" __global__ void k(float* x) { x[0] = missing; }', SM_90)


def test_a_program_that_does_not_fit_is_not_compiled() -> None:
    out, large = buffer("out", 4), buffer("large", 64 << 10, scope=Scope.SHARED)
    tx = Var("tx")
    body = For(tx, 4, ForKind.THREAD_X, Alloc(large, put(out, (tx,), at(large, tx))))
    with pytest.raises(CodegenError, match="262144 bytes of shared memory, but the limit is"):
        build_cuda(program(body, [], [out]), SM_90, symbol="k")


def test_an_architecture_that_this_compiler_does_not_know_is_named() -> None:
    with pytest.raises(MissingDependency, match="does not compile for sm_70") as caught:
        build_cuda(reversed_rows(barrier=True), Target.parse("sm_70"), symbol="k")
    assert "sm_90" in str(caught.value.hint)


def test_a_machine_without_cupy_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    with pytest.raises(MissingDependency, match="requires NVRTC through cupy") as caught:
        nvrtc.version()
    assert caught.value.hint == "pip install 'ansorpy[cuda]'" and caught.value.exit_code == 5


def halves() -> Program:
    x, out = (buffer(name, 64, dtype=DType.FLOAT16) for name in ("x", "out"))
    i = Var("i")
    body = For(i, 64, ForKind.VECTORIZED, put(out, (i,), at(x, i) * at(x, i)))
    return program(body, [x], [out])


def test_neighbours_are_one_instruction() -> None:
    """What the source asks for at once, the assembler's input has at once."""
    from cupy.cuda import nvrtc as api

    text = build_cuda(halves(), SM_80, symbol="k").source
    made = api.createProgram(text, "k.cu", (), ())
    api.compileProgram(made, ("--gpu-architecture=compute_80", "--std=c++17"))
    assert ".v4" in api.getPTX(made).decode()


ATTENTIONS = {
    "vit": heads_attend(1, 197, 197, 3, 64),
    "decoder": heads_attend(1, 1, 128, 12, 64, guarded=True),
    "windows": heads_attend(64, 49, 49, 3, 32, masks=((1, 3, 49, 49), (64, 1, 49, 49))),
    "long": heads_attend(1, 512, 512, 16, 16),
}


@pytest.mark.parametrize(("name", "target"), pairs(ATTENTIONS, (SM_80, SM_90)))
def test_attention_is_one_kernel_without_spills(name: str, target: Target) -> None:
    """Of networks' sizes: the programs that the analytic model puts first."""
    dag, rng = ComputeDAG.of(ATTENTIONS[name]), np.random.default_rng(0)
    sampler = SketchSampler(Task(dag, target, 1))
    sketch = sampler.place(0, rng)
    table = sketch.sample(256, rng)
    table = table[sketch.valid(table)]
    seconds = gpu_seconds(target, view_nest(sketch.space.nest(table), len(table)))
    run = lower(sketch.resolve(table[int(np.argmin(seconds))])).run
    code = build_cuda(run, target, symbol=name)
    assert len(code.plan.launches) == 1
    assert code.resources[0].spilled_bytes == 0
    assert code.plan.workspace_bytes == 0


def test_attention_over_many_keys_is_two_kernels_without_spills() -> None:
    """One for the parts, whose scores are a block of keys, and one that combines them."""
    dag, rng = ComputeDAG.of(heads_attend(1, 512, 4099, 12, 64)), np.random.default_rng(0)
    [made] = KeyBlocks().rewrite(dag, SM_80)
    sketch = SketchSampler(Task(made.dag, SM_80, 1)).place(0, rng)
    table = sketch.sample(256, rng)
    table = table[sketch.valid(table)]
    seconds = gpu_seconds(SM_80, view_nest(sketch.space.nest(table), len(table)))
    run = lower(sketch.resolve(table[int(np.argmin(seconds))])).run
    code = build_cuda(run, SM_80, symbol="long")
    assert len(code.plan.launches) == 2
    assert all(kernel.spilled_bytes == 0 for kernel in code.resources)
    assert code.plan.workspace_bytes < 12 * 512 * 4099  # a quarter of the scores
