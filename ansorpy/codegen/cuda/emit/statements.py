"""Statements as lines of C: one function a node kind, listed in :data:`STATEMENTS`.

A statement outside of the loop that binds a thread or block index is executed by the first thread
or block only.  The condition is put around its stores alone, so that all threads reach the loops
inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansorpy.codegen.clike.code import COMPARE, Code
from ansorpy.codegen.clike.comments import in_comment
from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.cuda.emit.assignment import assignment
from ansorpy.codegen.cuda.emit.boxes import box_copy
from ansorpy.codegen.cuda.emit.copies import async_copy
from ansorpy.codegen.cuda.emit.elements import element
from ansorpy.codegen.cuda.emit.emitter import C_TYPES, Emitter
from ansorpy.codegen.cuda.emit.expressions import narrowed
from ansorpy.codegen.cuda.emit.matrices import MatrixPair, matrix_pair
from ansorpy.codegen.cuda.emit.mma import PAIRED, ROW_BYTES, function_name
from ansorpy.codegen.cuda.emit.vectorized import transposed_loop, vector_loop
from ansorpy.codegen.cuda.emit.wgmma import commit, fence, matrix, wait
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Load, as_expr, walk
from ansorpy.ir.extents import most
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
    THREAD_INDICES,
    Alloc,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    Fence,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Prefetch,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
    expressions,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed

__all__ = ["STATEMENTS"]

_WARP = 32


def _seq(e: Emitter, s: Seq) -> None:
    for part in s.body:
        e.statement(part)


def _for(e: Emitter, s: For) -> None:
    if s.kind in LAUNCH_INDICES:
        _bound(e, s)
    elif s.kind is ForKind.VECTORIZED:
        with e.by_the_first():
            vector_loop(e, s)
    elif s.kind is ForKind.BULK:
        box_copy(e, s)
    elif s.kind is ForKind.UNROLLED and not e.left_out and transposed_loop(e, s):
        pass
    elif s.kind is ForKind.SERIAL or s.kind is ForKind.UNROLLED:
        _loop(e, s)
    else:
        raise CodegenError(f"a kernel has no {s.kind.value} loops", hint=_NO_LOOPS[s.kind])


_NO_LOOPS = {
    ForKind.PARALLEL: "bind the loop to blocks or threads",
    ForKind.VTHREAD: "lower a schedule, which turns them into loops of a thread",
}


def _loop(e: Emitter, s: For) -> None:
    pair = matrix_pair(e, s)
    extent = s.extent if pair is None else s.extent // 2
    if extent == 1:
        with e.variable(s.var, Code("0"), (0, 0)):
            _iteration(e, s, pair)
        return
    if s.kind is ForKind.UNROLLED:
        e.line("#pragma unroll")
    with e.names.block():
        name, end = e.names.give(s.var), index(e, as_expr(extent)).at(COMPARE + 1)
        is_wide = most(s.extent) > e.indices.most
        header = f"for ({e.indices.of(is_wide)} {name} = 0; {name} < {end}; ++{name})"
        fused = s.var.name if "@" in s.var.name else ""
        with (
            e.block(header, fused),
            e.variable(s.var, Code(name, wide=is_wide), (0, extent - 1)),
        ):
            _iteration(e, s, pair)


def _iteration(e: Emitter, s: For, pair: MatrixPair | None) -> None:
    if pair is None:
        e.statement(s.body)
    else:
        _matrix_pair(e, pair)


def _bound(e: Emitter, s: For) -> None:
    """Emit a block or thread index; only the first ``extent`` blocks or threads take part."""
    before = e.bound.get(s.kind)
    available = e.extents[s.kind] if before is None else before
    if most(s.extent - available) > 0:
        raise CodegenError(
            f"a loop over {s.kind.value} of extent {s.extent} is inside one of extent {available}"
        )
    e.bound[s.kind] = s.extent
    if most(available - s.extent) > 0:
        if s.kind in THREAD_INDICES:
            _require_independent(s, fixed(available))
        end = index(e, as_expr(s.extent)).at(COMPARE + 1)
        signed = "" if isinstance(s.extent, int) else "(int)"  # a symbolic one may be negative
        with e.block(f"if ({signed}{s.kind.value} < {end})"):
            _index(e, s)
    else:
        _index(e, s)
    if before is None:
        del e.bound[s.kind]
    else:
        e.bound[s.kind] = before


def _index(e: Emitter, s: For) -> None:
    if s.extent == 1:
        with e.variable(s.var, Code("0"), (0, 0)):
            e.statement(s.body)
        return
    name = e.names.give(s.var)
    e.line(f"const int {name} = {s.kind.value};  // {in_comment(f'{s.var.name}: 0..{s.extent}')}")
    with e.variable(s.var, Code(name), (0, s.extent - 1)):
        e.statement(s.body)


_TOGETHER: Mapping[type[Stmt], str] = {
    Barrier: "a barrier", Shuffle: "an exchange of values", Instruction: "an instruction of a warp",
}  # fmt: skip


def _require_independent(s: For, available: int) -> None:
    """Check that no barrier waits for the threads left out, and that no warp is divided.

    Blocks that are left out wait for nothing.
    """
    whole_warps = fixed(s.extent) % _WARP == 0 and available % _WARP == 0
    for inner in walk_stmts(s):
        what = _TOGETHER.get(type(inner))
        if what is not None and (isinstance(inner, Barrier) or not whole_warps):
            raise CodegenError(
                f"only the first {s.extent} of {s.kind.value} reach {what}",
                hint="give all thread loops of a kernel the same extent",
            )


def _if(e: Emitter, s: If) -> None:
    _require_alike(e, s)
    with sharing(e, s.cond):
        cond = e.value(s.cond).text
    with e.block(f"if ({cond})"):
        e.statement(s.then)
    if s.other is not None:
        with e.otherwise():
            e.statement(s.other)


def _let(e: Emitter, s: Let) -> None:
    _require_alike(e, s)
    code = index(e, s.value)
    name = e.names.give(s.var)
    is_wide = code.wide or not e.fits(s.value)
    e.line(f"const {e.indices.of(is_wide)} {name} = {code.text};")
    with e.variable(s.var, Code(name, wide=is_wide), e.bounds(s.value)):
        e.statement(s.body)


def _require_alike(e: Emitter, s: If | Let) -> None:
    """A condition that all threads evaluate must not read a value that only thread 0 wrote."""
    reads = [x.source for root in expressions(s) for x in walk(root) if isinstance(x, Load)]
    if e.written.intersection(reads) and e.left_out:
        raise CodegenError(
            "a condition outside of the thread loops reads what the kernel writes",
            hint="move it into the loops that are bound to threads",
        )


def _alloc(e: Emitter, s: Alloc) -> None:
    """Declare registers; shared memory and workspace are declared with the kernel."""
    if s.buffer.scope is Scope.LOCAL:
        name = e.names.give(s.buffer)
        sizes = "".join(f"[{extent}]" for extent in s.buffer.shape) or "[1]"
        e.line(f"{C_TYPES[s.buffer.dtype]} {name}{sizes};")
    adds = any(_adds_asynchronously(inner, s.buffer) for inner in walk_stmts(s.body))
    e.adding += [s.buffer] * adds
    e.statement(s.body)
    del e.adding[len(e.adding) - adds :]


def _adds_asynchronously(s: Stmt, buffer: Buffer) -> bool:
    return (
        isinstance(s, Instruction) and s.operands[0][0] is buffer and intrinsic(s.name).asynchronous
    )


def _barrier(e: Emitter, s: Barrier) -> None:
    if s.scope is not Scope.SHARED:
        raise CodegenError(
            "a kernel cannot wait for other blocks", hint="end the kernel: launches run in order"
        )
    e.line("__syncthreads();" if e.cluster == 1 else "sync_cluster();")


def _store(e: Emitter, s: Store) -> None:
    with e.by_the_first(), sharing(e, s.value):
        target = element(e, s.buffer, s.indices)
        e.line(f"{assignment(e, target, s)};")


def _shuffle(e: Emitter, s: Shuffle) -> None:
    """Emit an exchange, which all threads of a warp must execute, so nothing may guard it."""
    if e.left_out:
        raise CodegenError(
            "values are exchanged outside of the thread loops",
            hint="bind the loop around it to threads",
        )
    with sharing(e, s.value):
        target = element(e, s.buffer, s.indices)
        code = e.value(s.value)
        dtype = s.buffer.dtype
        got = Code(f"__shfl_xor_sync(0xffffffff, {code.text}, {s.distance})")
        e.line(f"{target} = {narrowed(e, got, dtype).text};")


def _prefetch(e: Emitter, s: Prefetch) -> None:
    """Emit nothing: other threads hide the latency, and a prefetch might be out of bounds."""


def _instruction(e: Emitter, s: Instruction) -> None:
    """Emit an instruction that all lanes of a warp execute, each on its share of the operands."""
    if e.left_out:
        raise CodegenError(f"{s.name} is outside of the thread loops")
    e.need(function_name(s.name))
    operands = ", ".join(_operand(e, s, n) for n in range(len(s.operands)))
    e.line(f"{function_name(s.name)}({operands});")


def _matrix_pair(e: Emitter, pair: MatrixPair) -> None:
    """Emit two loads of fragments as one."""
    name = PAIRED[pair.first.name]
    e.need(name)
    to = ", ".join(_operand(e, load, 0) for load in (pair.first, pair.second))
    e.line(f"{name}({to}, {_operand(e, pair.first, 1)}, {pair.step});")


def _operand(e: Emitter, s: Instruction, number: int) -> str:
    """The registers of a fragment, or the start of its rows in shared memory and their distance."""
    buffer, at = s.operands[number]
    if intrinsic(s.name).asynchronous and buffer.scope is not Scope.LOCAL:
        return matrix(e, s.name, number, buffer, at)
    if buffer.scope is Scope.LOCAL:
        return element(e, buffer, at[:-1])
    width, form = ROW_BYTES // buffer.dtype.bytes, linear(flat_index(e, buffer, at))
    rows = buffer.steps[-2]
    if any(n % width for n in (*form.terms.values(), form.const, rows)):
        raise CodegenError(
            f"rows of {buffer.name} do not start at multiples of {ROW_BYTES} bytes",
            hint="pad them to a multiple, or let lanes load single elements",
        )
    return f"&{element(e, buffer, at)}, {rows}"


STATEMENTS: Mapping[type[Stmt], Callable[[Emitter, Any], None]] = {
    Seq: _seq, For: _for, If: _if, Let: _let, Alloc: _alloc, Store: _store, Barrier: _barrier,
    Shuffle: _shuffle, Instruction: _instruction, AsyncCopy: async_copy, Commit: commit,
    Wait: wait, Prefetch: _prefetch, Fence: fence,
}  # fmt: skip
