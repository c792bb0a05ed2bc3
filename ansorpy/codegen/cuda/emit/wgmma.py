"""Warpgroup instructions: helpers generated from their declarations, and matrix descriptors.

A descriptor specifies a matrix in shared memory: its start, the distance between groups of eight
rows and, where rows are split into parts, between parts.  Sources: PTX ISA, "Matrix Descriptor
Format", "Strides" and "Canonical Layouts" of ``wgmma``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.codegen.cuda.emit.emitter import C_TYPES, Emitter
from ansorpy.codegen.cuda.emit.mma import MMA_NEEDS, PTX, function_name
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.fragments import fragment_registers
from ansorpy.ir.intrinsics import (
    MMA_SYNC,
    WGMMA,
    WGMMA_HELD,
    Intrinsic,
    intrinsic,
    is_along,
    operand_tensors,
)
from ansorpy.ir.loops import SWIZZLED_ROWS, Async, Buffer, Commit, Fence, Scope, Wait

__all__ = [
    "WGMMA_HELPERS", "WGMMA_NEEDS", "commit", "fence", "matrix",
    "wait",
]  # fmt: skip

_UNIT = 16
"""Unit of descriptor fields, in bytes."""

_MODES = {128: 1, 64: 2, 32: 3}
"""Descriptor code of the swizzle mode, by the number of bytes in a part of a row."""

_ORDER = """\
// Makes this thread's writes to shared memory visible to later asynchronous instructions.
__device__ __forceinline__ void fence_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Orders earlier accesses to registers before such instructions.
__device__ __forceinline__ void fence_registers() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for all groups of this warpgroup but the last few.
template <int Pending> __device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(Pending) : "memory");
}
// Keeps later reads of these registers after this point.
__device__ __forceinline__ void settled(float& x) {
  asm volatile("" : "+f"(x) :: "memory");
}
__device__ __forceinline__ void settled(int& x) {
  asm volatile("" : "+r"(x) :: "memory");
}
template <typename T, int N> __device__ __forceinline__ void settled(T (&x)[N]) {
  #pragma unroll
  for (int n = 0; n < N; ++n) {
    settled(x[n]);
  }
}"""

_MATRIX = """\
// The descriptor of a matrix of this form that starts at an element of a tile.
__device__ __forceinline__ unsigned long long matrix_at(
    const void* at, unsigned long long form) {
  return form | ((unsigned)__cvta_generic_to_shared(at) & 0x3ffff) >> 4;
}"""

_SWIZZLED = """\
// The swizzled position of an element: units of 16 bytes are permuted within parts of a row.
template <int Part, int Size> __device__ __forceinline__ int swizzled(int at) {
  return at ^ (at * Size >> 7 & Part / 16 - 1) * (16 / Size);
}"""


def fence(e: Emitter, s: Fence) -> None:
    """Order earlier writes before asynchronous instructions."""
    e.need("order")
    e.line("fence_shared();" if s.scope is Scope.SHARED else "fence_registers();")


def commit(e: Emitter, s: Commit) -> None:
    """End a group of copies or instructions."""
    _emit_group(e, s.kind, f"commit_{s.kind.value}();", "commit();")


def wait(e: Emitter, s: Wait) -> None:
    """Wait for all groups but the last ``pending``; if that is 0, the sums may be read."""
    _emit_group(e, s.kind, f"wait_{s.kind.value}<{s.pending}>();", f"wait<{s.pending}>();")
    if s.kind is Async.PRODUCTS and not s.pending:
        for buffer in e.adding:
            e.line(f"settled({e.place(buffer)});")


def _emit_group(e: Emitter, kind: Async, line: str, of_boxes: str) -> None:
    if kind is Async.PRODUCTS:
        e.need("order")
        e.line(line)
        return
    if e.copies:
        e.line(f"{e.copies}.{of_boxes}")
    if e.by_threads:
        e.need("copies")
        with e.by_the_first():
            e.line(line)


def matrix(e: Emitter, name: str, number: int, buffer: Buffer, at: tuple[Expr, ...]) -> str:
    """The descriptor of operand *number* of instruction *name*.

    Raises:
        CodegenError: The layout of the tile is not one that the instruction reads.
    """
    by = intrinsic(name)
    tensor = operand_tensors(by.pattern)[number]
    rows, columns = buffer.shape[-2:]
    part = buffer.swizzle
    inside = tensor.shape[-1] * buffer.dtype.bytes
    whole = part in _MODES and columns * buffer.dtype.bytes % part == 0
    if not whole or rows % SWIZZLED_ROWS or (part % inside and inside % part):
        raise CodegenError(
            f"the layout of {buffer.name} is not one that {name} reads",
            hint=f"rows are cut into parts of {', '.join(map(str, _MODES))} bytes",
        )
    # Along the reduction, parts of rows are separate steps: an instruction stays within one part.
    lead = 1 if is_along(by, tensor) else rows * part // _UNIT
    form = lead << 16 | part * SWIZZLED_ROWS // _UNIT << 32 | _MODES[part] << 62
    e.need("matrix_at")
    start = index(e, flat_index(e, buffer, at)).text
    return f"matrix_at(&{e.place(buffer)}[{start}], {form:#x}ull)"


def _function(by: Intrinsic) -> str:
    """The helper function of one instruction; each lane passes what it holds in registers."""
    total, left, right = by.types
    _, a, b = operand_tensors(by.pattern)
    size = fragment_registers(by.fragments[0])
    m, n = by.pattern.shape
    depth = by.pattern.reduce_axes[0].extent
    wide, held = ("s32", "r") if total is DType.INT32 else ("f32", "f")
    sums = _lines([f"%{at}" for at in range(size)], f'"\n{" " * 15}"', 16)
    outs = _lines([f'"+{held}"(c[{at}])' for at in range(size)], f"\n{' ' * 17}", 5)
    held_a = fragment_registers(by.fragments[1]) if by.fragments[1] else 0
    turned = ((b,) if held_a else (a, b)) if left.bits == 16 else ()
    across = "".join(f", {int(not is_along(by, t))}" for t in turned)
    kinds = f", 1, 1{across}" if left.is_float else ""
    text = f"wgmma.mma_async.sync.aligned.m{m}n{n}k{depth}.{wide}.{PTX[left]}.{PTX[right]}"
    near = 32 // left.bits
    words = [f'"r"(packed(&a[{at}]))' for at in range(0, held_a, near)] or ['"l"(a)']
    places = [f"%{size + at}" for at in range(len(words))]
    first = f"{{{', '.join(places)}}}" if held_a else places[0]
    given = f"const {C_TYPES[left]} (&a)[{held_a}]" if held_a else "unsigned long long a"
    return f"""\
// C[{m}, {n}] += A[{m}, {depth}] * B[{depth}, {n}] on a warpgroup; complete after a wait.
__device__ __forceinline__ void {function_name(by.name)}(
    {C_TYPES[total]} (&c)[{size}], {given}, unsigned long long b) {{
  asm volatile("{{.reg .pred adds; setp.eq.u32 adds, 0, 0;"
               "{text} "
               "{{{sums}}}, "
               "{first}, %{size + len(words)}, adds{kinds};}}"
               : {outs}
               : {", ".join(words)}, "l"(b));
}}"""


def _lines(parts: Sequence[str], between: str, each: int) -> str:
    """Join *parts* as a list, *each* of them per line."""
    lines = [", ".join(parts[at : at + each]) for at in range(0, len(parts), each)]
    return f", {between}".join(lines)


WGMMA_HELPERS: Mapping[str, str] = {
    "order": _ORDER,
    "matrix_at": _MATRIX,
    "swizzled": _SWIZZLED,
    **{function_name(by.name): _function(by) for by in (*WGMMA, *WGMMA_HELD)},
}
"""In order of emission."""

WGMMA_NEEDS: Mapping[str, tuple[str, ...]] = {
    **{
        function_name(by.name): tuple(kind.value for kind in by.types[1:2] if kind.is_half)
        for by in WGMMA
    },
    **{
        function_name(by.name): MMA_NEEDS[function_name(like.name)]
        for by in WGMMA_HELD
        for like in MMA_SYNC
        if like.types == by.types
    },
}
