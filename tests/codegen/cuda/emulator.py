"""Generated CUDA C run on the host: the very text, compiled with g++ around fibers as threads."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.codegen.cuda.emit.emitter import C_TYPES
from ansorpy.codegen.cuda.emit.mma import function_name
from ansorpy.codegen.cuda.emit.prelude import HELPERS, prelude
from ansorpy.codegen.cuda.emit.program import CudaSource, emit_cuda
from ansorpy.codegen.cuda.launch.plan import Argument
from ansorpy.ir.dtypes import DType
from ansorpy.ir.intrinsics import (
    MMA_SYNC,
    WGMMA,
    WGMMA_HELD,
    Intrinsic,
    is_along,
    operand_tensors,
)
from ansorpy.ir.loops import Program
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent
from ansorpy.target import Target

__all__ = ["Emulated", "emulate", "needs_compiler"]

Array = NDArray[Any]
TARGET = Target.parse("sm_90")

# Helpers that are instructions of the GPU, in C.
_ON_HOST = {
    "float16": """\
struct float16 { unsigned short bits; };
static float to_float(float16 x) {
  const int exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
  const float sign = x.bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? __int_as_float(0x7fc00000) : sign * HUGE_VALF;
  return sign * (exponent ? ldexpf((float)(mantissa + 1024), exponent - 25)
                          : ldexpf((float)mantissa, -24));
}
static float16 to_float16(float x) {
  const unsigned short sign = signbit(x) ? 0x8000 : 0;
  const float size = fabsf(x);
  if (x != x) return {(unsigned short)(sign | 0x7e00)};
  int exponent;
  frexpf(size, &exponent);
  const int place = size == 0.0f || exponent - 11 < -24 ? -24 : exponent - 11;
  const float rounded = rintf(ldexpf(size, -place));
  if (size >= 65520.0f) return {(unsigned short)(sign | 0x7c00)};
  const int whole = (int)rounded;
  if (place == -24) return {(unsigned short)(sign | whole)};
  return {(unsigned short)(sign | (((place + 25) << 10) + whole - 1024))};
}""",
    "copies": "",
    "dot_s8s8": """\
static int dot_s8s8(unsigned a, unsigned b) {
  int sum = 0;
  for (int n = 0; n < 32; n += 8) sum += (signed char)(a >> n) * (signed char)(b >> n);
  return sum;
}""",
    "dot_u8s8": """\
static int dot_u8s8(unsigned a, unsigned b) {
  int sum = 0;
  for (int n = 0; n < 32; n += 8) sum += (unsigned char)(a >> n) * (signed char)(b >> n);
  return sum;
}""",
}

_NEAR = {DType.FLOAT16: 2, DType.BFLOAT16: 2, DType.FLOAT32: 1, DType.INT8: 4, DType.UINT8: 4}


def _mma_sync(by: Intrinsic) -> str:
    total, left, right = (C_TYPES[dtype] for dtype in by.types)
    near = _NEAR[by.types[1]]
    return f"""\
static void {function_name(by.name)}(
    {total} (&c)[4], const {left} (&a)[{4 * near}], const {right} (&b)[{2 * near}]) {{
  mma<{near}>(c, a, b, __LINE__);
}}"""


def _wgmma(by: Intrinsic) -> str:
    total, left, right = (C_TYPES[dtype] for dtype in by.types)
    _, a, b = operand_tensors(by.pattern)
    columns, depth = by.pattern.shape[1], by.pattern.reduce_axes[0].extent
    across = ", ".join(str(not is_along(by, tensor)).lower() for tensor in (a, b))
    return f"""\
static void {function_name(by.name)}(
    {total} (&c)[{columns // 2}], unsigned long long a, unsigned long long b) {{
  group_product<{left}, {right}, {columns}, {depth}, {across}>(c, a, b);
}}"""


def _wgmma_held(by: Intrinsic) -> str:
    total, left, right = (C_TYPES[dtype] for dtype in by.types)
    columns, depth = by.pattern.shape[1], by.pattern.reduce_axes[0].extent
    across = str(not is_along(by, operand_tensors(by.pattern)[2])).lower()
    return f"""\
static void {function_name(by.name)}(
    {total} (&c)[{columns // 2}], const {left} (&a)[{depth // 2}], unsigned long long b) {{
  held_product<{left}, {right}, {columns}, {depth}, {across}>(c, a, b, __LINE__);
}}"""


_OWN = {function_name(by.name): _mma_sync(by) for by in MMA_SYNC}
_OWN |= {function_name(by.name): _wgmma(by) for by in WGMMA}
_OWN |= {function_name(by.name): _wgmma_held(by) for by in WGMMA_HELD}
_ON_HOST |= _OWN | {"matrices": "", "order": "", "matrix_at": ""}
_ON_HOST |= {"tensor_map": "", "barriers": "", "clusters": "", "copy_box": ""}

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")

_HEADER = Path(__file__).parent / "emulator.h"
_COMPILER = ["g++", "-Og", "-std=c++17", "-fPIC", "-w", "-fwrapv", "-ffp-contract=off"]


@cache
def _compiled_header() -> tempfile.TemporaryDirectory[str]:
    """A folder with what g++ made of the header, which takes longer to read than most kernels."""
    folder = tempfile.TemporaryDirectory(prefix="emulator-")
    made = os.path.join(folder.name, f"{_HEADER.name}.gch")
    subprocess.run([*_COMPILER, "-x", "c++-header", str(_HEADER), "-o", made], check=True)
    return folder


class Emulated:
    """Several programs compiled as one library, each under its symbol."""

    def __init__(self, sources: Sequence[tuple[str, Program, CudaSource]], folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.plans = {symbol: source.plan for symbol, _, source in sources}
        self.programs = {symbol: program for symbol, program, _ in sources}
        helpers = {name: None for _, _, source in sources for name in source.helpers}
        functions = prelude(helpers, dict(HELPERS) | _ON_HOST)
        text = "\n\n".join(
            ['#include "emulator.h"', functions]
            + [_kernels(source) for _, _, source in sources]
            + [_entries(program, source) for _, program, source in sources]
        )
        path = folder / "kernels.cpp"
        path.write_text(text)
        library = folder / "kernels.so"
        include = [f"-I{_compiled_header().name}", f"-I{_HEADER.parent}"]
        command = [*_COMPILER, "-shared", *include, str(path), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000] + text
        self.library = ctypes.CDLL(os.fspath(library))

    def __call__(self, symbol: str, arrays: Sequence[Array], sizes: Sequence[int] = ()) -> None:
        """Run the program of *symbol* on *arrays*, in the order of its parameters, at *sizes*."""
        plan = self.plans[symbol]
        workspace = np.full(max(plan.workspace_bytes, 1) + 256, 0xFF, np.uint8)
        base = -(-workspace.ctypes.data // 256) * 256
        for launch in plan.at(sizes):
            places = [
                sizes[a.position] if a.place == "size"
                else arrays[a.position].ctypes.data if a.place == "parameter"
                else base + a.position
                for a in launch.arguments
            ]  # fmt: skip
            table = (ctypes.c_void_p * max(len(places), 1))(*places)
            entry = getattr(self.library, f"run_{launch.kernel}")
            entry.restype = ctypes.c_char_p
            shape = ctypes.c_int * 3
            failure = entry(table, shape(*launch.grid), shape(*launch.block))
            assert failure is None, failure.decode()


def emulate(programs: dict[str, Program], folder: Path, target: Target = TARGET) -> Emulated:
    """*programs* by symbol, written for *target* and compiled for the host."""
    return Emulated(
        [(symbol, p, emit_cuda(p, target, symbol)) for symbol, p in programs.items()], folder
    )


def _kernels(source: CudaSource) -> str:
    dynamic = r"extern __shared__ __align__\(\d+\) unsigned char shared_memory\[\];"
    return re.sub(dynamic, "", source.kernels)


def _entries(program: Program, source: CudaSource) -> str:
    """A function of plain C a kernel, which launches it."""
    plan = source.plan
    together = {
        name: blocks
        for blocks, name in re.findall(
            r"__cluster_dims__\((\d+), 1, 1\) .* (\w+)\(\n", source.kernels
        )
    }
    buffers = _buffers(program)
    lines = []
    for launch in plan.launches:
        sizes = {
            plan.dims[a.position]: f"(int64_t)args[{n}]"
            for n, a in enumerate(launch.arguments) if a.place == "size"
        }  # fmt: skip
        arguments = ", ".join(
            _argument(n, a, buffers, sizes) for n, a in enumerate(launch.arguments)
        )
        name = launch.kernel
        lines += [
            f"static void call_{name}(void** args) {{ {name}({arguments}); }}",
            f'extern "C" const char* run_{name}(void** args, int* grid, int* block) {{',
            f"  return launch(call_{name}, args, grid, block, {together.get(name, 1)});",
            "}",
        ]
    return "\n".join(lines)


def _argument(
    number: int, argument: Argument, buffers: dict[str, str], sizes: dict[Dim, str]
) -> str:
    """An argument of a kernel in C, from the number or address in a table."""
    given = f"args[{number}]"
    if argument.place == "size":
        return f"(int64_t){given}"
    if argument.boxes is None:
        return f"({buffers[argument.name]}*){given}"
    form = argument.boxes
    shape, box = ", ".join(c_extent(n, sizes) for n in form.shape), ", ".join(map(str, form.box))
    rank = f"{form.element_bytes}, {len(form.shape)}, {form.swizzle}"
    return f"TensorMap{{(const char*){given}, {rank}, {{{shape}}}, {{{box}}}}}"


def _buffers(program: Program) -> dict[str, str]:
    """The C type of every parameter and workspace buffer, by name."""
    from ansorpy.codegen.cuda.passes.split_kernels import workspace_offsets

    found = [param.buffer for param in program.params]
    found += list(workspace_offsets(program.body)[0])
    return {buffer.name: C_TYPES[buffer.dtype] for buffer in found}
