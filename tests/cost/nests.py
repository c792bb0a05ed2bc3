"""Nests written out by hand, with integer sizes or columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.cost.programs import Programs
from ansorpy.ir.builders import maximum, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Leaf, LeafAccess, Loop, Nest, moving
from ansorpy.schedule.tables.size import Size, above, both, either, fails

S, R = AxisKind.SPACE, AxisKind.REDUCE


def loop(name: str, extent: Size, kind: AxisKind = S, stage: str = "C", **marks: Size) -> Loop:
    marked: dict[str, Size] = {"parallel": 0, "vector": 0, "unroll": 0, **marks}
    return Loop(stage, name, kind, extent, marked["parallel"], marked["vector"], marked["unroll"])


def unrolled(loops: tuple[Loop, ...], limit: Size) -> tuple[Loop, ...]:
    """*loops* with those unrolled, from the inside out, whose body stays within *limit*."""
    found: list[Loop] = []
    steps: Size = 1
    for x in reversed(loops):
        steps = steps * (1 + fails(x.vector) * (x.extent - 1))
        fits = both(fails(above(steps - limit, 0)), fails(either(x.parallel, x.vector)))
        found.append(replace(x, unroll=either(x.unroll, fits)))
    return tuple(reversed(found))


def access(
    tensor: Tensor,
    *coefs: tuple[Size, ...],
    alloc_depth: int = 0,
    is_output: bool = False,
    is_constant: bool = False,
) -> LeafAccess:
    return LeafAccess(
        buffer=tensor.name,
        shape=tensor.shape,
        elem_bytes=tensor.dtype.bytes,
        coefs=coefs,
        is_constant=is_constant,
        is_packed=False,
        alloc_depth=alloc_depth,
        is_output=is_output,
        exact=(True,) * len(coefs),
        moving=moving(coefs, (True,) * len(coefs), len(coefs[0])),
    )


def matmul_op(n: int, m: int, k: int) -> tuple[Tensor, Tensor, ComputeOp]:
    a, b = placeholder((n, k), name="A"), placeholder((k, m), name="B")
    r = reduce_axis(k, name="k")
    return a, b, compute((n, m), lambda i, j: sum(a[i, r] * b[r, j], axis=r), name="C")


def oracle_matmul() -> Nest:
    """512³, order io jo k ji ii, io and jo parallel, k unrolled, ji vectorised."""
    a, b, c = matmul_op(512, 512, 512)
    loops = (
        loop("i.0", 32, parallel=1),
        loop("j.0", 64, parallel=1),
        loop("k", 512, R, unroll=1),
        loop("j.1", 8, vector=1),
        loop("i.1", 16),
    )
    rows, cols, red = (16, 0, 0, 0, 1), (0, 8, 0, 1, 0), (0, 0, 1, 0, 0)
    leaf = Leaf(
        stage="C",
        op=c,
        loops=loops,
        accesses=(access(a, rows, red), access(b, red, cols)),
        write=access(c, rows, cols, is_output=True),
        body=c.body,
        own_from=0,
        max_unroll=0,
    )
    return Nest((leaf,))


def tiled_matmul(
    n: int,
    m: int,
    k: int,
    /,
    *,
    i1: Size,
    i2: Size,
    j1: Size,
    j2: Size,
    k1: Size,
    parallel: Size = 1,
    vector: Size = 1,
    max_unroll: Size = 64,
    constant_b: Size = 0,
) -> Nest:
    """i0 j0 (parallel) i1 j1 k0 k1 i2 j2 (vector), then a relu stage of its own."""
    a, b, c = matmul_op(n, m, k)
    i0, j0, k0 = n // (i1 * i2), m // (j1 * j2), k // k1
    loops = (
        loop("i.0", i0, parallel=parallel),
        loop("j.0", j0, parallel=parallel),
        loop("i.1", i1),
        loop("j.1", j1),
        loop("k.0", k0, R),
        loop("k.1", k1, R),
        loop("i.2", i2),
        loop("j.2", j2, vector=vector),
    )
    rows: tuple[Size, ...] = (i1 * i2, 0, i2, 0, 0, 0, 1, 0)
    cols: tuple[Size, ...] = (0, j1 * j2, 0, j2, 0, 0, 0, 1)
    red: tuple[Size, ...] = (0, 0, 0, 0, k1, 1, 0, 0)
    product = Leaf(
        stage="C",
        op=c,
        loops=unrolled(loops, max_unroll),
        accesses=(access(a, rows, red), access(b, red, cols, is_constant=constant_b == 1)),
        write=access(c, rows, cols),
        body=c.body,
        own_from=0,
        max_unroll=max_unroll,
    )
    relu = compute((n, m), lambda i, j: maximum(c[i, j], 0.0), name="D")
    last = Leaf(
        stage="D",
        op=relu,
        loops=(loop("i", n, stage="D", parallel=1), loop("j", m, stage="D", vector=1)),
        accesses=(access(c, (1, 0), (0, 1)),),
        write=access(relu, (1, 0), (0, 1), is_output=True),
        body=relu.body,
        own_from=0,
        max_unroll=0,
    )
    return Nest((product, last))


def elementwise(n: int, m: int, *, along: int, parallel: Size = 0) -> Nest:
    """Twice a matrix, its last loop vectorised: over dimension *along* of row-major storage."""
    a = placeholder((n, m), name="A")
    b = compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    inner, outer = ((0, 1), (1, 0)) if along == 1 else ((1, 0), (0, 1))
    coefs = tuple((outer[d], inner[d]) for d in range(2))
    loops = (
        loop("outer", (n, m)[1 - along], stage="B", parallel=parallel),
        loop("inner", (n, m)[along], stage="B", vector=1),
    )
    leaf = Leaf(
        stage="B",
        op=b,
        loops=loops,
        accesses=(access(a, *coefs),),
        write=access(b, *coefs, is_output=True),
        body=b.body,
        own_from=0,
        max_unroll=0,
    )
    return Nest((leaf,))


class Given(Programs):
    """A nest written by hand, in place of the one that a space would make of its table."""

    def __init__(self, nest: Nest, rows: int) -> None:
        state = State.initial(ComputeDAG([matmul_op(8, 8, 8)[-1]]))
        super().__init__(Space(state), np.zeros((rows, 0), dtype=np.int64))
        self.__dict__["nest"] = nest  # where a cached property keeps its value
