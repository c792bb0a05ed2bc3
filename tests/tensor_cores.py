"""Products that tensor cores compute, in small, odd, prime and single sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, const
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.steps.mma import MmaStep
from ansorpy.target import Target

__all__ = [
    "GPU",
    "HOPPER",
    "LARGE",
    "TYPES",
    "WORKLOADS",
    "arguments",
    "matmul",
    "sketches",
    "tolerance",
    "turned",
    "values",
    "wgmma_sketches",
]  # fmt: skip

Array = npt.NDArray[Any]

GPU = Target.parse("sm_80")
HOPPER = Target.parse("sm_90a")

TYPES = {
    "float16": ("float16", "float16", "float32"), "bfloat16": ("bfloat16", "bfloat16", "float32"),
    "tf32": ("float32", "float32", "float32"), "int8": ("int8", "int8", "int32"),
    "uint8": ("uint8", "uint8", "int32"), "u8s8": ("uint8", "int8", "int32"),
    "s8u8": ("int8", "uint8", "int32"), "narrow": ("float16", "float16", "float16"),
}  # fmt: skip
"""Of the factors, and of the sum."""


def _as(e: Expr, dtype: str) -> Expr:
    return e if e.dtype.value == dtype else e.astype(dtype)


def matmul(kind: str, n: Extent, m: int, k: int) -> list[Tensor]:
    """``C[i, j] = sum_r A[i, r] B[r, j]`` of a kind of :data:`TYPES`."""
    left, right, total = TYPES[kind]
    x, y = placeholder((n, k), left, name="A"), placeholder((k, m), right, name="B")
    r = reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return b.sum(_as(x[i, r], total) * _as(y[r, j], total), axis=r)

    return [x, y, compute((n, m), product, name="C")]


def turned(kind: str, n: int, m: int, k: int, *, left: bool) -> list[Tensor]:
    """As :func:`matmul` with B given by its columns, and A too where *left*."""
    first, second, total = TYPES[kind]
    x = placeholder((k, n) if left else (n, k), first, name="A")
    y, r = placeholder((m, k), second, name="B"), reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        mine = x[r, i] if left else x[i, r]
        return b.sum(_as(mine, total) * _as(y[j, r], total), axis=r)

    return [x, y, compute((n, m), product, name="C")]


def batch_matmul(batch: int, n: int, m: int, k: int) -> list[Tensor]:
    """A batch with the second operand transposed, the results in another order, and a bias."""
    x, y = placeholder((batch, n, k), "float16", name="A"), placeholder((m, k), "float16", name="B")
    bias, r = placeholder((m,), name="bias"), reduce_axis(k, name="k")

    def product(i: Expr, s: Expr, j: Expr) -> Expr:
        return b.sum(_as(x[s, i, r], "float32") * _as(y[j, r], "float32"), axis=r)

    c = compute((n, batch, m), product, name="C")
    out = compute((n, batch, m), lambda i, s, j: b.maximum(c[i, s, j] + bias[j], 0.0), name="D")
    return [x, y, bias, out]


def heads(batch: int, n: int, m: int, h: int, k: int) -> list[Tensor]:
    """The scores of attention: rows of each matrix are a step of all heads apart."""
    x, y = (placeholder((batch, e, h, k), "float16", name=s) for e, s in ((n, "A"), (m, "B")))
    r = reduce_axis(k, name="k")

    def product(s: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
        return b.sum(_as(x[s, i, g, r], "float32") * _as(y[s, j, g, r], "float32"), axis=r)

    return [x, y, compute((batch, h, n, m), product, name="C")]


def viewed(n: int, m: int, k: int) -> list[Tensor]:
    """A transposed view as an operand."""
    x, y = placeholder((k, n), "float16", name="A"), placeholder((k, m), "float16", name="B")
    turned_a = compute((n, k), lambda i, q: x[q, i], name="T")
    r = reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return b.sum(_as(turned_a[i, r], "float32") * _as(y[r, j], "float32"), axis=r)

    return [x, y, compute((n, m), product, name="C")]


def gram(n: int, k: int) -> list[Tensor]:
    """``C = A A^T``: both operands are the same tensor."""
    x, r = placeholder((n, k), "float16", name="A"), reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return b.sum(_as(x[i, r], "float32") * _as(x[j, r], "float32"), axis=r)

    return [x, compute((n, n), product, name="C")]


def activated(n: int, m: int, k: int) -> list[Tensor]:
    """A product of what is computed first, and a function of the result that reads it twice."""
    x, y = placeholder((n, k), "float16", name="A"), placeholder((k, m), "float16", name="B")
    relu = compute((n, k), lambda i, q: b.maximum(x[i, q], const(0.0, DType.FLOAT16)), name="R")
    r = reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return b.sum(_as(relu[i, r], "float32") * _as(y[r, j], "float32"), axis=r)

    c = compute((n, m), product, name="C")
    return [x, y, compute((n, m), lambda i, j: c[i, j] * b.tanh(c[i, j]), name="D")]


def shifted(n: int, k: int, *, twice: bool) -> list[Tensor]:
    """What follows a product reads the row above each of its own, with *twice* its own too."""
    x, y, c = matmul("float16", n, n, k)

    def above(i: Expr, j: Expr) -> Expr:
        other = b.select(i >= 1, c[i - 1, j], 0.0)
        return other + c[i, j] if twice else other

    return [x, y, compute((n, n), above, name="D")]


def convolution(
    size: Sequence[int], ci: int, co: int, taps: int, *, stride: int = 1, pad: int = 0
) -> list[Tensor]:
    """Channels last, float16, with padding and what follows a convolution in a network."""
    h, w = size
    x = placeholder((2, h, w, ci), "float16", name="X")
    filters = placeholder((taps, taps, ci, co), "float16", name="W")

    def padded(n: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        inside = b.all_of(y >= pad, y < h + pad, z >= pad, z < w + pad)
        return b.select(inside, x[n, y - pad, z - pad, c], const(0.0, DType.FLOAT16))

    data = compute((2, h + 2 * pad, w + 2 * pad, ci), padded, name="P") if pad else x
    ry, rx, rc = (reduce_axis(e, name=s) for e, s in ((taps, "ry"), (taps, "rx"), (ci, "rc")))

    def at(n: Expr, y: Expr, z: Expr, o: Expr) -> Expr:
        left = data[n, y * stride + ry, z * stride + rx, rc]
        return b.sum(_as(left, "float32") * _as(filters[ry, rx, rc, o], "float32"),
                     axis=(ry, rx, rc))  # fmt: skip

    shape = (2, *((n + 2 * pad - taps) // stride + 1 for n in size), co)
    c = compute(shape, at, name="C")
    return [x, filters, compute(shape, lambda *i: b.maximum(c[i], 0.0).astype("float16"), name="D")]


WORKLOADS: dict[str, list[Tensor]] = {
    "even": matmul("float16", 64, 32, 48),
    "prime": matmul("float16", 37, 53, 29),
    "row": matmul("float16", 1, 40, 30),
    "column": matmul("float16", 29, 1, 25),
    "outer": matmul("float16", 18, 14, 1),
    "odd_bfloat16": matmul("bfloat16", 21, 35, 19),
    "odd_tf32": matmul("tf32", 19, 33, 21),
    "odd_int8": matmul("int8", 17, 25, 39),
    "odd_uint8": matmul("uint8", 9, 31, 70),
    "mixed": matmul("u8s8", 33, 10, 33),
    "mixed_again": matmul("s8u8", 10, 33, 64),
    "half_sums": matmul("narrow", 20, 23, 31),
    "turned": turned("float16", 32, 24, 37, left=True),
    "turned_bytes": turned("int8", 30, 19, 45, left=False),
    "batch": batch_matmul(3, 17, 12, 21),
    "gram": gram(19, 34),
    "viewed": viewed(32, 24, 40),
    "heads": heads(2, 18, 13, 3, 24),
    "activated": activated(18, 27, 20),
    "above": shifted(20, 33, twice=False),
    "with_above": shifted(18, 24, twice=True),
    "convolution": convolution((5, 9), 20, 14, 3, pad=1),
    "strided": convolution((7, 21), 12, 8, 3, stride=2),
    "pointwise": convolution((3, 17), 33, 10, 1),
    "deep": matmul("float16", 9, 14, 520),
    "deep_parts": turned("bfloat16", 24, 17, 384, left=True),
}


LARGE: dict[str, list[Tensor]] = {
    "even": matmul("float16", 70, 80, 100),
    "odd": matmul("bfloat16", 65, 39, 50),
    "short": matmul("float16", 130, 64, 16),
    "half_sums": matmul("narrow", 61, 34, 40),
    "both_along": turned("float16", 60, 130, 48, left=False),
    "both_across": turned("bfloat16", 72, 64, 48, left=True),
    "bytes": turned("int8", 64, 70, 64, left=False),
    "mixed": turned("u8s8", 61, 33, 70, left=False),
    "bytes_across": matmul("int8", 62, 45, 70),
    "words_across": matmul("int8", 62, 44, 72),
    "tf32": turned("tf32", 62, 40, 37, left=False),
    "tf32_across": turned("tf32", 66, 52, 24, left=True),
    "batch": batch_matmul(2, 62, 32, 40),
    "heads": heads(1, 66, 32, 2, 48),
    "activated": activated(64, 48, 40),
    "convolution": convolution((2, 64), 16, 32, 3, pad=1),
}
"""Some of them large enough for warpgroups."""


def sketches(
    tensors: Sequence[Tensor], rng: np.random.Generator, target: Target = GPU
) -> list[PlacedSketch]:
    """Those of preset default that multiply in tensor cores, one a sketch."""
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), target, 1, "tf32"))
    chosen = [
        n
        for n, sketch in enumerate(sampler.sketches)
        if any(isinstance(step, MmaStep) for step in sketch.history)
    ]
    return [sampler.place(n, rng) for n in chosen]


def wgmma_sketches(tensors: Sequence[Tensor], rng: np.random.Generator) -> list[PlacedSketch]:
    """Those that multiply by instructions of warpgroups."""
    found = sketches(tensors, rng, HOPPER)
    return [sketch for sketch in found if "wgmma" in str(sketch.placed.history)]


def values(tensors: Sequence[Tensor], rng: np.random.Generator) -> dict[str, Array]:
    """Random inputs, by name."""
    found: dict[str, Array] = {}
    for op in ComputeDAG.of(tensors).args:
        if op.dtype.is_float:
            found[op.name] = rng.standard_normal(op.shape).astype(op.dtype.numpy)
        else:
            low = -128 if op.dtype.is_signed else 0
            found[op.name] = rng.integers(low, low + 256, op.shape).astype(op.dtype.numpy)
    return found


def arguments(program: Program, known: Mapping[str, Array]) -> list[Array]:
    """What *program* is called with; outputs hold what is none."""
    return [
        np.full(p.buffer.shape, np.nan if p.buffer.dtype.is_float else 77, p.buffer.dtype.numpy)
        if p.role is Role.OUTPUT
        else known[p.buffer.name]
        for p in program.params
    ]


def tolerance(tensors: Sequence[Tensor], want: Array) -> float:
    """What rounding allows: of results to 16 bits, of operands to TF32, of sums in float32."""
    args, (out,) = tensors[:-1], tensors[-1:]
    rounded = out.dtype is DType.FLOAT16 or any(a.dtype is DType.FLOAT32 for a in args[:2])
    return (2e-3 if rounded else 1e-5) * max(1.0, float(np.abs(want.astype(np.float64)).max()))
