"""The loops that are timed, in hand-written LLVM IR: limits must not depend on our code generator.

All have the signature ``void loop(ptr data, i64 blocks, i64 repeats, ptr sink)``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.jit import LoadedObjects, load
from ansorpy.codegen.singletons import singleton
from ansorpy.target import Target

__all__ = ["BLOCK", "LINKS", "Loop", "full_lanes", "loop", "sums", "team_kernel"]

Loop: TypeAlias = Callable[[int, int, int, int], None]

_SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)

BLOCK = 8
"""Vectors read or written per step, each read into its own sum to hide the add latency."""

PIECE_STEPS = 3000
"""Dependent multiplications per piece of work: about 3 µs, so spinning threads get their share."""

BUSY_REPEATS = 8000
"""Steps of the loop that keeps a thread busy: 25 to 50 µs."""

RELAY_LAPS = 256
"""Laps of the token; with two threads 15 µs within a cache, 80 µs between two."""

RELAY_LOOKS = 50_000
"""Polls of the token before a thread gives up, because others may be descheduled: about 50 µs."""

LINKS = 16
"""Single-cycle operations per step of the chain, each dependent on the one before."""


def full_lanes() -> int:
    """Number of float32 lanes of this machine's widest vector."""
    return Target.host().lanes(32)


def sums() -> int:
    """Number of independent sums that fit in registers next to two operands."""
    return 12 if Target.host().vector_registers <= 16 else 24


@cache
def loop(name: str) -> Loop:
    """``multiply_add``, ``multiply_add_half`` (half vectors), ``read``, ``write`` or ``chain``."""
    return _SIGNATURE(_library().address(name))


@cache
def team_kernel(name: str) -> int:
    """Address of a kernel that a team of threads runs.

    ``fork_join``: each thread does a short piece of work (some µs); the workspace has 8 bytes per
        thread.
    ``busy``: each thread is kept busy with multiply-adds; the workspace has one vector of operands,
        followed by one vector per thread.
    ``relay``: the threads pass a token around; the workspace is the token, an int64 from which the
        next call continues.
    """
    return _threads().address(name)


@singleton
def _library() -> LoadedObjects:
    lanes = full_lanes()
    text = "\n".join((
        _multiply_add("multiply_add", lanes, sums()),
        _multiply_add("multiply_add_half", max(1, lanes // 2), sums()),
        _read(lanes), _write(lanes), _CHAIN,
    ))  # fmt: skip
    symbols = ["multiply_add", "multiply_add_half", "read", "write", "chain"]
    return load([compile_ir(text, Target.host())], symbols=symbols)


@singleton
def _threads() -> LoadedObjects:
    multiply_add = _multiply_add("multiply_add", full_lanes(), sums())
    text = "\n".join((_FORK_JOIN, multiply_add, _busy(full_lanes()), _RELAY))
    return load([compile_ir(text, Target.host())], symbols=["fork_join", "busy", "relay"])


def _multiply_add(name: str, lanes: int, count: int) -> str:
    vector = f"<{lanes} x float>"
    phis = "\n".join(
        f"  %s{i} = phi {vector} [ %x, %entry ], [ %n{i}, %loop ]" for i in range(count)
    )
    steps = "\n".join(
        f"  %n{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %s{i}, {vector} %x, {vector} %x)"
        for i in range(count)
    )
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})

define void @{name}(ptr %data, i64 %unused, i64 %repeats, ptr %sink) {{
entry:
  %x = load {vector}, ptr %data
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %repeats
  br i1 %again, label %loop, label %done
done:
{_total(vector, count)}
  ret void
}}
"""


def _read(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    outer = "\n".join(
        f"  %r{i} = phi {vector} [ zeroinitializer, %entry ], [ %n{i}, %row ]" for i in range(BLOCK)
    )
    inner = "\n".join(
        f"  %s{i} = phi {vector} [ %r{i}, %repeat ], [ %n{i}, %loop ]" for i in range(BLOCK)
    )
    steps = "\n".join(
        f"  %x{i} = load {vector}, ptr %p{i}\n  %n{i} = fadd {vector} %s{i}, %x{i}"
        for i in range(BLOCK)
    )
    return _sweep("read", vector, outer, inner, steps, _total(vector, BLOCK))


def _write(lanes: int) -> str:
    """Emit volatile stores: LLVM would otherwise drop repeated stores of the same bytes."""
    vector = f"<{lanes} x float>"
    steps = "\n".join(
        f"  store volatile {vector} zeroinitializer, ptr %p{i}, align {4 * lanes}"
        for i in range(BLOCK)
    )
    return _sweep("write", vector, "", "", steps, "")


def _sweep(name: str, vector: str, outer: str, inner: str, steps: str, end: str) -> str:
    """Emit a repeated loop over the blocks of *data*."""
    places = "\n".join(
        f"  %v{i} = add i64 %base, {i}\n  %p{i} = getelementptr {vector}, ptr %data, i64 %v{i}"
        for i in range(BLOCK)
    )
    return f"""
define void @{name}(ptr %data, i64 %blocks, i64 %repeats, ptr %sink) {{
entry:
  br label %repeat
repeat:
  %j = phi i64 [ 0, %entry ], [ %j.next, %row ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %repeat ], [ %next, %loop ]
{inner}
  %base = mul i64 %i, {BLOCK}
{places}
{steps}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %blocks
  br i1 %again, label %loop, label %row
row:
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, %repeats
  br i1 %more, label %repeat, label %done
done:
{end}
  ret void
}}
"""


def _total(vector: str, count: int) -> str:
    """Store the sum of ``%n0 ...`` so that none of them is dead code."""
    lines = [f"  %t1 = fadd {vector} %n0, %n1"]
    lines += [f"  %t{i} = fadd {vector} %t{i - 1}, %n{i}" for i in range(2, count)]
    return "\n".join([*lines, f"  store {vector} %t{count - 1}, ptr %sink"])


def _links() -> str:
    """Alternate additions and exclusive ors: neither LLVM nor the CPU can shorten the chain."""
    lines, last = [], "%x"
    for i in range(LINKS):
        operation = "add" if i % 2 else "xor"
        lines.append(f"  %c{i} = {operation} i64 {last}, %{'i' if i % 2 else 'k'}")
        last = f"%c{i}"
    return "\n".join(lines)


_CHAIN = f"""
define void @chain(ptr %data, i64 %k, i64 %repeats, ptr %sink) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = phi i64 [ %k, %entry ], [ %c{LINKS - 1}, %loop ]
{_links()}
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %repeats
  br i1 %again, label %loop, label %done
done:
  store i64 %c{LINKS - 1}, ptr %sink
  ret void
}}
"""

_FORK_JOIN = f"""
declare void @{TEAM}(ptr, ptr, i32)

define internal void @piece(ptr %sink, i64 %number, i64 %pieces) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = phi i64 [ %number, %entry ], [ %y, %loop ]
  %y = mul i64 %x, 3
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, {PIECE_STEPS}
  br i1 %again, label %loop, label %done
done:
  %cell = getelementptr i64, ptr %sink, i64 %number
  store volatile i64 %y, ptr %cell
  ret void
}}

define i32 @fork_join(ptr %arguments, ptr %workspace, i32 %threads) {{
  call void @{TEAM}(ptr @piece, ptr %workspace, i32 %threads)
  ret i32 0
}}
"""


def _busy(lanes: int) -> str:
    return f"""
define internal void @busy_piece(ptr %operands, i64 %number, i64 %pieces) {{
  %row = add i64 %number, 1
  %sink = getelementptr <{lanes} x float>, ptr %operands, i64 %row
  call void @multiply_add(ptr %operands, i64 0, i64 {BUSY_REPEATS}, ptr %sink)
  ret void
}}

define i32 @busy(ptr %arguments, ptr %workspace, i32 %threads) {{
  call void @{TEAM}(ptr @busy_piece, ptr %workspace, i32 %threads)
  ret i32 0
}}
"""


_RELAY = f"""
define internal void @relay_piece(ptr %token, i64 %number, i64 %pieces) {{
entry:
  br label %lap
lap:
  %k = phi i64 [ 0, %entry ], [ %k.next, %pass ]
  br label %look
look:
  %looks = phi i64 [ 0, %lap ], [ %looks.next, %again ]
  %now = load atomic i64, ptr %token acquire, align 8
  %turn = urem i64 %now, %pieces
  %mine = icmp eq i64 %turn, %number
  br i1 %mine, label %pass, label %again
again:
  %looks.next = add i64 %looks, 1
  %late = icmp uge i64 %looks.next, {RELAY_LOOKS}
  br i1 %late, label %done, label %look
pass:
  %next = add i64 %now, 1
  store atomic i64 %next, ptr %token release, align 8
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, {RELAY_LAPS}
  br i1 %more, label %lap, label %done
done:
  ret void
}}

define i32 @relay(ptr %arguments, ptr %workspace, i32 %threads) {{
  call void @{TEAM}(ptr @relay_piece, ptr %workspace, i32 %threads)
  ret i32 0
}}
"""
