"""Loop programs lowered by hand, and a way to run them: the generator's tests build on these."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.build import build
from ansorpy.codegen.llvm.jit import load
from ansorpy.codegen.llvm.memory import aligned_empty
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, ReduceKind, Var, const
from ansorpy.ir.builders import maximum
from ansorpy.ir.loops import (
    Alloc, Buffer, For, ForKind, Param, Program, Role, Scope, Seq, Stmt, Store,
)  # fmt: skip
from ansorpy.target import Target

KINDS = {
    "s": ForKind.SERIAL, "p": ForKind.PARALLEL, "v": ForKind.VECTORIZED, "u": ForKind.UNROLLED,
}  # fmt: skip
_symbols = itertools.count()


def buffer(
    name: str, *shape: int, dtype: DType = DType.FLOAT32, scope: Scope = Scope.GLOBAL
) -> Buffer:
    return Buffer(name, shape, dtype, scope)


def at(source: Buffer, *indices: Expr | int) -> Load:
    return Load(source, tuple(const(i) if isinstance(i, int) else i for i in indices))


def put(
    target: Buffer, indices: Sequence[Expr | int], value: Expr, reduce: ReduceKind | None = None
) -> Store:
    return Store(
        target, tuple(const(i) if isinstance(i, int) else i for i in indices), value, reduce
    )


def add_to(target: Buffer, indices: Sequence[Expr | int], value: Expr) -> Store:
    return put(target, indices, value, ReduceKind.SUM)


def nest(loops: str, body: Callable[..., Stmt]) -> Stmt:
    """``nest("p4 s8 v16", lambda i, j, k: ...)``: nested loops, kind and extent each."""
    specs = [(KINDS[word[0]], int(word[1:])) for word in loops.split()]
    variables = [Var(f"i{depth}") for depth in range(len(specs))]
    stmt = body(*variables)
    for (kind, extent), var in reversed(list(zip(specs, variables, strict=True))):
        stmt = For(var, extent, kind, stmt)
    return stmt


def program(body: Stmt, inputs: Sequence[Buffer], outputs: Sequence[Buffer],
            constants: Sequence[Buffer] = ()) -> Program:
    params = [Param(b, Role.INPUT) for b in inputs]
    params += [Param(b, Role.CONSTANT) for b in constants]
    params += [Param(b, Role.OUTPUT) for b in outputs]
    return Program("test", tuple(params), body)


class Compiled:
    """A built and loaded program; arrays must be passed in parameter order."""

    def __init__(self, source: Program, target: Target | None = None) -> None:
        symbol = f"test{next(_symbols)}"
        self.object = build(source, target or Target.host(), symbol=symbol)
        self.library = load([self.object])
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
        self.function = kind(self.library.address(symbol))

    def __call__(self, *arrays: NDArray, threads: int = 1) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        space = aligned_empty((max(64, self.object.workspace_bytes(threads)),), np.uint8)
        assert self.function(ctypes.addressof(pointers), space.ctypes.data, threads) == 0


def random(shape: Sequence[int], dtype: DType = DType.FLOAT32, seed: int = 0) -> NDArray:
    rng = np.random.default_rng(seed)
    out = aligned_empty(shape, dtype.numpy)
    out[...] = rng.standard_normal(shape).astype(dtype.numpy)
    return out


def matmul(n: int, m: int, k: int, rows: int, columns: int, inner: int = 16,
           *, local: bool = True) -> Program:
    """``C = max(A @ B + bias, 0)`` in register tiles, B packed [m/columns, k, columns]."""
    a, b = buffer("A", n, k), buffer("B", m // columns, k // inner, inner, columns)
    bias, c = buffer("bias", m), buffer("C", n, m)
    tile = buffer("tile", rows, columns, scope=Scope.LOCAL)

    def block(i0: Var, j0: Var) -> Stmt:
        def where(i: Expr, j: Expr) -> tuple[Expr, Expr]:
            return (i, j) if local else (i0 * rows + i, j0 * columns + j)
        out = tile if local else c
        body = Seq((
            nest(f"u{rows} v{columns}", lambda i, j: put(out, where(i, j), const(0.0, DType.FLOAT32))),
            nest(f"s{k // inner} s{inner} u{rows} v{columns}", lambda k0, k1, i, j: add_to(
                out, where(i, j), at(a, i0 * rows + i, k0 * inner + k1) * at(b, j0, k0, k1, j))),
            nest(f"u{rows} v{columns}", lambda i, j: put(
                c, (i0 * rows + i, j0 * columns + j),
                maximum(at(out, *where(i, j)) + at(bias, j0 * columns + j), 0.0))),
        ))
        return Alloc(tile, body) if local else body
    body = nest(f"p{n // rows} p{m // columns}", block)
    return program(body, [a], [c], [b, bias])
