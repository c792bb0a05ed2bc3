"""Loop programs lowered by hand, and a way to run them: the generator's tests build on these."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.object_code import KERNEL
from ansorpy.ir.builders import maximum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, ReduceKind, Var, const
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Param,
    Program,
    Role,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

KINDS = {
    "s": ForKind.SERIAL, "p": ForKind.PARALLEL, "v": ForKind.VECTORIZED, "u": ForKind.UNROLLED,
}  # fmt: skip
F32 = DType.FLOAT32
ZERO = const(0.0, F32)
_symbols = itertools.count()

Array = NDArray[Any]
Index = Expr | int


def buffer(name: str, *shape: AnyExtent, dtype: DType = F32, scope: Scope = Scope.GLOBAL) -> Buffer:
    return Buffer(name, shape, dtype, scope)


def _exprs(indices: Sequence[Index]) -> tuple[Expr, ...]:
    return tuple(const(i) if isinstance(i, int) else i for i in indices)


def at(source: Buffer, *indices: Index) -> Load:
    return Load(source, _exprs(indices))


def put(
    target: Buffer, indices: Sequence[Index], value: Expr, reduce: ReduceKind | None = None
) -> Store:
    return Store(target, _exprs(indices), value, reduce)


def add_to(target: Buffer, indices: Sequence[Index], value: Expr) -> Store:
    return put(target, indices, value, ReduceKind.SUM)


def nest(loops: str, body: Callable[..., Stmt]) -> Stmt:
    """``nest("p4 s8 v16", lambda i, j, k: ...)``: nested loops, kind and extent of each."""
    specs = [(KINDS[word[0]], int(word[1:])) for word in loops.split()]
    variables = [Var(f"i{depth}") for depth in range(len(specs))]
    stmt = body(*variables)
    for (kind, extent), var in reversed(list(zip(specs, variables, strict=True))):
        stmt = For(var, extent, kind, stmt)
    return stmt


def program(
    body: Stmt,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    constants: Sequence[Buffer] = (),
) -> Program:
    params = [Param(b, Role.INPUT) for b in inputs]
    params += [Param(b, Role.CONSTANT) for b in constants]
    params += [Param(b, Role.OUTPUT) for b in outputs]
    return Program("test", tuple(params), body)


class Compiled:
    """A built and loaded program; arrays must be passed in parameter order."""

    def __init__(
        self, source: Program, target: Target | None = None, *, prefetch: bool = False
    ) -> None:
        symbol = f"test{next(_symbols)}"
        self.object = build(source, target or Target.host(), symbol=symbol, prefetch=prefetch)
        self.library = load([self.object])
        self.function = KERNEL(self.library.address(symbol))

    def __call__(self, *arrays: Array, threads: int = 1) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        space = aligned_empty((max(64, fixed(self.object.workspace_bytes(threads))),), np.uint8)
        assert self.function(ctypes.addressof(pointers), space.ctypes.data, threads) == 0


def random(shape: Sequence[int], dtype: DType = F32, seed: int = 0) -> Array:
    """Standard normal numbers (small ones for integers), 64-byte aligned."""
    rng = np.random.default_rng(seed)
    out = aligned_empty(shape, dtype.numpy)
    if dtype is DType.BOOL:
        out[...] = rng.integers(0, 2, shape)
    elif dtype.is_float:
        out[...] = rng.standard_normal(shape).astype(dtype.numpy)
    else:
        out[...] = rng.integers(-3 if dtype.is_signed else 0, 4, shape)
    return out


def empty(shape: Sequence[int], dtype: DType = F32) -> Array:
    """An output nothing was written to yet: NaN (or an unlikely integer) everywhere."""
    out = aligned_empty(shape, dtype.numpy)
    out[...] = np.nan if dtype.is_float else 77
    return out


def matmul(
    n: int, m: int, k: int, rows: int, columns: int, inner: int = 1, *, local: bool = True
) -> Program:
    """``C = max(A @ B + bias, 0)`` in register tiles.

    B is packed as [m/columns, k/inner, inner, columns].  With *local* the tile is a local
    buffer, else the sum goes straight into C.
    """
    a, b = buffer("A", n, k), buffer("B", m // columns, k // inner, inner, columns)
    bias, c = buffer("bias", m), buffer("C", n, m)
    tile = buffer("tile", rows, columns, scope=Scope.LOCAL)
    out, across = (tile if local else c), f"u{rows} v{columns}"

    def block(i0: Var, j0: Var) -> Stmt:
        def row(i: Expr) -> Expr:
            return i0 * rows + i

        def where(i: Expr, j: Expr) -> tuple[Expr, Expr]:
            return (i, j) if local else (row(i), j0 * columns + j)

        def multiply(k0: Var, k1: Var, i: Var, j: Var) -> Stmt:
            return add_to(out, where(i, j), at(a, row(i), k0 * inner + k1) * at(b, j0, k0, k1, j))

        def finish(i: Var, j: Var) -> Stmt:
            total = at(out, *where(i, j)) + at(bias, j0 * columns + j)
            return put(c, (row(i), j0 * columns + j), maximum(total, 0.0))

        body = Seq(
            (
                nest(across, lambda i, j: put(out, where(i, j), ZERO)),
                nest(f"s{k // inner} s{inner} {across}", multiply),
                nest(across, finish),
            )
        )
        return Alloc(tile, body) if local else body

    return program(nest(f"p{n // rows} p{m // columns}", block), [a], [c], [b, bias])


def conv(
    size: int, channels: int, filters: int, taps: int, stride: int, rows: int, columns: int,
    *, unrolled_taps: bool = False, padded: bool = False,
) -> Program:  # fmt: skip
    """A direct convolution, channels last.

    Weights are [filters/columns, taps, taps, channels, columns].  With *padded* the
    border is a guard around the reads, else the input comes with it.
    """
    pad = taps // 2
    side = (size - 1) * stride + taps - (2 * pad if padded else 0)
    x, y = buffer("X", side, side, channels), buffer("Y", size, size, filters)
    w = buffer("W", filters // columns, taps, taps, channels, columns)

    def read(h: Expr, v: Expr, c: Expr) -> Expr:
        if not padded:
            return at(x, h, v, c)
        inside = (h - pad >= 0) & (h - pad < side) & (v - pad >= 0) & (v - pad < side)
        return select(inside, at(x, h - pad, v - pad, c), 0.0)

    def block(o: Var, h: Var, v0: Var) -> Stmt:
        def where(i: Expr, j: Expr) -> tuple[Expr, Expr, Expr]:
            return (h, v0 * rows + i, o * columns + j)

        def tap(c: Var, kh: Var, kw: Var, i: Var, j: Var) -> Stmt:
            pixel = read(h * stride + kh, (v0 * rows + i) * stride + kw, c)
            return add_to(y, where(i, j), pixel * at(w, o, kh, kw, c, j))

        across = f"u{rows} v{columns}"
        kind = "u" if unrolled_taps else "s"
        return Seq(
            (
                nest(across, lambda i, j: put(y, where(i, j), ZERO)),
                nest(f"s{channels} {kind}{taps} {kind}{taps} {across}", tap),
            )
        )

    blocks = f"p{filters // columns} p{size} s{size // rows}"
    return program(nest(blocks, block), [x], [y], [w])
