"""Object code: other targets, loading, timing, the allocator."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.codegen.llvm.objects.build import assembly, build, compile_ir
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.timing import bench
from ansorpy.errors import CodegenError
from ansorpy.target import Target
from tests.codegen.programs import ZERO, Compiled, buffer, matmul, nest, program, put, random


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "cortex-a76", "aarch64-linux-gnu"])
def test_other_targets_give_elf_objects(name: str) -> None:
    made = build(matmul(6, 36, 8, 3, 18), Target.parse(name), symbol="kernel")
    assert made.code.startswith(b"\x7fELF") and b"kernel" in made.code
    machine = int.from_bytes(made.code[18:20], "little")
    assert machine == (62 if name.startswith("x86") else 183)


def test_the_same_program_gives_the_same_bytes() -> None:
    source = matmul(6, 32, 8, 3, 32)
    one, two = (build(source, Target.host(), symbol="k") for _ in range(2))
    assert (one.code, one.digest) == (two.code, two.digest)


def test_accumulators_stay_in_registers() -> None:
    target = Target.parse("x86-64-v4")
    listing = assembly(emit_llvm(matmul(28, 32, 64, 14, 32), target, "k"), target)
    body = listing[listing.index("k.region1:") :]
    assert body.count("vfmadd") == 28
    assert "(%rsp), %zmm" not in body


def test_a_cuda_target_is_refused() -> None:
    with pytest.raises(CodegenError, match="target sm_90 is not an LLVM target"):
        build(matmul(2, 2, 2, 1, 1), Target.parse("sm_90"), symbol="k")


def test_broken_ir_is_reported() -> None:
    with pytest.raises(CodegenError, match="LLVM rejects"):
        compile_ir("define void @f( {", Target.host())


def test_a_library_knows_its_symbols_and_can_be_closed() -> None:
    made = [build(matmul(2, 2, 2, 1, 1), Target.host(), symbol=f"f{n}") for n in range(2)]
    library = load(made)
    assert library.address("f0") != library.address("f1")
    with pytest.raises(CodegenError, match="no function f2 was loaded; there are f0, f1"):
        library.address("f2")
    library.close()
    with pytest.raises(CodegenError, match="was closed"):
        library.address("f0")


def test_an_undefined_symbol_is_an_error_not_a_crash() -> None:
    code = compile_ir(
        f'target triple = "{Target.host().triple}"\n'
        "declare void @no_such_function_anywhere()\n"
        "define void @f() {\n call void @no_such_function_anywhere()\n ret void\n}",
        Target.host(),
    )
    with pytest.raises(CodegenError, match="cannot be loaded"):
        load([code], symbols=["f"])


def test_timing_cycles_through_the_copies_and_skips_warm_up() -> None:
    y = buffer("y", 4)
    kernel = Compiled(program(nest("s4", lambda i: put(y, (i,), ZERO)), [], [y]))
    copies = [random((4,), seed=n) for n in range(3)]
    rows = [[c.ctypes.data] for c in copies]
    address = kernel.library.address(kernel.object.symbol)
    status, seconds = bench(address, rows[:2], 0, threads=1, warmup=1, count=5)
    assert status == 0 and len(seconds) == 5 and (seconds >= 0).all()
    assert not copies[0].any() and not copies[1].any() and copies[2].any()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (7, 11), (1 << 20,)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_arrays_are_aligned_writable_and_outlive_their_pages(shape: Any, dtype: Any) -> None:
    array = aligned_empty(shape, dtype)
    assert array.shape == shape and array.dtype == dtype
    assert array.ctypes.data % 64 == 0 or array.size == 0
    array[...] = 1
    view = array[...]
    del array
    gc.collect(0)
    assert (view == 1).all()
