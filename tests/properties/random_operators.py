"""Random definitions of several operators, small: what the rules of a preset are tried on.

Operators read any of those before them, so stages have several consumers, reductions reduce
reductions, and borders, strides, gathers, narrow types and extents of 1 meet one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute, placeholder, reduce_axis
from tests import workloads

__all__ = ["random_definition", "random_values"]

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 20, 24, 31)
MOST = 6000
"""Elements of a tensor."""


def random_definition(rng: np.random.Generator) -> ComputeDAG:
    """One to seven random operators; now and then Winograd's, which are too special to be hit."""
    if rng.random() < 0.06:
        return ComputeDAG.of(workloads.winograd(1, 5, 4, 2, 2))
    return Operators(rng).definition()


def random_values(dag: ComputeDAG, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Standard normal floats, small integers, by placeholder name."""
    return {
        a.name: (
            rng.standard_normal(a.shape) if a.dtype.is_float else rng.integers(0, 100, a.shape)
        ).astype(a.dtype.numpy)
        for a in dag.args
    }


class Operators:
    """A pool of float32 tensors that grows by one random operator at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.pool: list[Tensor] = []
        self.count = 0
        shape = [self.extent() for _ in range(int(rng.integers(0, 4)))]
        while math.prod(shape) > MOST:
            shape.pop()
        self.input(shape)

    def definition(self) -> ComputeDAG:
        actions = (
            self.unary, self.binary, self.rearranged, self.reduced, self.normalised, self.product,
            self.product, self.convolution, self.convolution, self.joined, self.gathered,
            self.spread, self.narrow_product, self.copied, self.neighbours, self.own_product,
        )  # fmt: skip
        while not self.computes() or self.rng.random() < 0.75:
            self.pick(actions)()
            self.pool = [t for t in self.pool if t.size <= MOST]
        computes = self.computes()
        extra = [self.pick(computes)] if self.rng.random() < 0.3 else []
        return ComputeDAG(list(dict.fromkeys([computes[-1], *extra])))

    def computes(self) -> list[Tensor]:
        return [t for t in self.pool if isinstance(t, ComputeOp)]

    def pick(self, of: Sequence[Any]) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def extent(self) -> int:
        return int(self.pick(EXTENTS))

    def recent(self) -> Tensor:
        found: Tensor = self.pool[-1] if self.rng.random() < 0.6 else self.pick(self.pool)
        return found

    def named(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def input(self, shape: Sequence[int], dtype: str = "float32") -> PlaceholderOp:
        constant = bool(self.pool) and self.rng.random() < 0.5
        made = placeholder(shape, dtype, name=self.named("p"), constant=constant)
        self.pool += [made] if not self.pool else []
        return made

    def add(self, shape: Sequence[int], fn: Callable[..., Expr]) -> ComputeOp:
        names = tuple(f"i{d}" for d in range(len(shape)))
        made = compute(shape, fn, name=self.named("t"), names=names)
        self.pool.append(made)
        return made

    def unary(self) -> None:
        t = self.recent()
        fn = self.pick([
            lambda v: b.maximum(v, 0.0), b.tanh, lambda v: b.exp(b.minimum(v, 1.0)), b.sigmoid,
            lambda v: b.select(v > 0.1, v, v * 0.1),
            lambda v: b.tanh(v).astype("float64").astype("float32"),
        ])  # fmt: skip
        self.add(t.shape, lambda *i: fn(t[i]))

    def binary(self) -> None:
        t = self.recent()
        other = self.pick([u for u in self.pool if u.shape == t.shape])
        if self.rng.random() < 0.4:
            other = self.input([n if self.rng.random() < 0.5 else 1 for n in t.shape])
        fn = self.pick([lambda x, y: x + y, lambda x, y: x * y, b.maximum])

        def at(*i: Expr) -> Expr:
            there = (x if n > 1 else 0 for x, n in zip(i, other.shape, strict=True))
            value: Expr = fn(t[i], other[tuple(there)])
            return value

        self.add(t.shape, at)

    def rearranged(self) -> None:
        """A transpose, every n-th element from an offset, or two axes as one."""
        t = self.recent()
        if t.ndim < 2:
            return
        kind = int(self.rng.integers(3))
        if kind == 0:
            order = [int(d) for d in self.rng.permutation(t.ndim)]
            moved = self.moved(t, order)
            self.add([t.shape[d] for d in order], lambda *i: moved(*i) * 2.0)
        elif kind == 1:
            step, start = int(self.rng.integers(1, 4)), int(self.rng.integers(t.shape[0]))
            shape = [(t.shape[0] - start - 1) // step + 1, *t.shape[1:]]
            self.add(shape, lambda i, *rest: t[(i * step + start, *rest)] + 1.0)
        else:
            n = t.shape[1]
            shape = [t.shape[0] * n, *t.shape[2:]]
            self.add(shape, lambda i, *rest: t[(i // n, i % n, *rest)] + 0.5)

    def copied(self) -> None:
        """A copy of a copy, the axes perhaps in another order, as the operand of a product."""
        t = self.recent()
        order = [int(d) for d in self.rng.permutation(t.ndim)]
        turned = self.add([t.shape[d] for d in order], self.moved(t, order))
        self.add(turned.shape, self.moved(turned, sorted(order)))
        self.product()

    @staticmethod
    def moved(t: Tensor, order: list[int]) -> Callable[..., Expr]:
        """The elements of *t* with its dimensions in another order."""
        return lambda *i: t[tuple(i[order.index(d)] for d in range(t.ndim))]

    def neighbours(self) -> None:
        """What lies before each element along an axis, alone or with the element itself."""
        t = self.recent()
        if t.ndim == 0:
            return
        along, both = int(self.rng.integers(t.ndim)), self.rng.random() < 0.5

        def at(*i: Expr) -> Expr:
            before = t[tuple(x - 1 if d == along else x for d, x in enumerate(i))]
            other = b.select(i[along] >= 1, before, 0.0)
            return other * 0.5 + t[i] if both else other

        self.add(t.shape, at)

    def own_product(self) -> None:
        """The products of all rows, or columns, of one tensor, perhaps scaled by one element."""
        t = self.recent()
        if t.ndim < 2:
            return
        summed = int(self.pick([t.ndim - 2, t.ndim - 1]))
        k, rows = reduce_axis(t.shape[summed], name="k"), t.shape[2 * t.ndim - 3 - summed]
        scale = self.input(()) if self.rng.random() < 0.5 else None

        def at(*i: Expr) -> Expr:
            def row(x: Expr) -> Expr:
                return t[(*i[:-2], k, x) if summed == t.ndim - 2 else (*i[:-2], x, k)]

            both = row(i[-2]) * row(i[-1])
            return b.sum(both if scale is None else both * scale[()], axis=k)

        self.add((*t.shape[:-2], rows, rows), at)

    def reduced(self) -> None:
        t = self.recent()
        over = [d for d in range(t.ndim) if self.rng.random() < 0.5] or list(range(t.ndim))[-1:]
        if not over:
            return
        axes = {d: reduce_axis(t.shape[d], name=f"k{d}") for d in over}
        kept = [d for d in range(t.ndim) if d not in over]
        fn, before = self.pick([b.sum, b.max, b.min]), self.pick([lambda v: v, lambda v: v * v])

        def at(*i: Expr) -> Expr:
            every = {**dict(zip(kept, i, strict=True)), **axes}
            source = before(t[tuple(every[d] for d in range(t.ndim))])
            value: Expr = fn(source, axis=tuple(axes.values()))
            return value

        self.add([t.shape[d] for d in kept], at)

    def normalised(self) -> None:
        t = self.recent()
        if t.ndim == 0:
            return
        k = reduce_axis(t.shape[-1], name="k")
        total = self.add(t.shape[:-1], lambda *i: b.sum(t[(*i, k)] * t[(*i, k)], axis=k))
        self.add(t.shape, lambda *i: t[i] / (total[i[:-1]] + 1.0))

    def product(self) -> None:
        t, width = self.recent(), self.extent()
        if t.ndim == 0:
            return
        k, across = reduce_axis(t.shape[-1], name="k"), self.rng.random() < 0.4
        w = self.input((width, t.shape[-1]) if across else (t.shape[-1], width))

        def at(*i: Expr) -> Expr:
            weight = w[i[-1], k] if across else w[k, i[-1]]
            return b.sum(t[(*i[:-1], k)] * weight, axis=k)

        self.add((*t.shape[:-1], width), at)

    def convolution(self) -> None:
        """Over the second last axis: padded, strided and dilated, dense or channel by channel."""
        t = self.recent()
        if t.ndim < 2:
            return
        size, step, gap = (int(self.rng.integers(1, n)) for n in (4, 3, 3))
        pad, (n, channels), width = int(self.rng.integers(0, 3)), t.shape[-2:], self.extent()
        out = (n + 2 * pad - (size - 1) * gap - 1) // step + 1
        if out < 1:
            return

        def bordered(*i: Expr) -> Expr:
            inside = (i[-2] >= pad) & (i[-2] < n + pad)
            return b.select(inside, t[(*i[:-2], i[-2] - pad, i[-1])], 0.0)

        source = self.add((*t.shape[:-2], n + 2 * pad, channels), bordered)
        r, c = reduce_axis(size, name="r"), reduce_axis(channels, name="c")
        if self.rng.random() < 0.3:
            w = self.input((size, channels))
            self.add(
                (*t.shape[:-2], out, channels),
                lambda *i: b.sum(source[(*i[:-2], i[-2] * step + r * gap, i[-1])] * w[r, i[-1]], r),
            )
            return
        w = self.input((size, channels, width))
        self.add(
            (*t.shape[:-2], out, width),
            lambda *i: b.sum(
                source[(*i[:-2], i[-2] * step + r * gap, c)] * w[r, c, i[-1]], axis=(r, c)
            ),
        )

    def joined(self) -> None:
        """Two tensors one after the other along their first axis."""
        t = self.recent()
        if t.ndim == 0:
            return
        other = self.pick([u for u in self.pool if u.ndim and u.shape[1:] == t.shape[1:]])
        n = t.shape[0]
        self.add(
            (n + other.shape[0], *t.shape[1:]),
            lambda i, *rest: b.select(i < n, t[(i, *rest)], other[(i - n, *rest)]),
        )

    def gathered(self) -> None:
        t = self.recent()
        if t.ndim == 0:
            return
        at, n = self.input((self.extent(),), "int32"), t.shape[0]
        self.add(
            (*at.shape, *t.shape[1:]),
            lambda i, *rest: t[(at[i].astype("int64") % n, *rest)] + 0.0,
        )

    def spread(self) -> None:
        """A transposed convolution of stride 2: zeros between the elements, then a convolution."""
        t, width = self.recent(), self.extent()
        if t.ndim != 2:
            return
        n, channels = t.shape
        between = self.add(
            (2 * n + 3, channels),
            lambda i, j: b.select(
                (i >= 2) & (i < 2 * n + 1) & (i % 2).equal(0), t[(i - 2) // 2, j], 0.0
            ),
        )
        w, r, c = self.input((3, channels, width)), *(
            reduce_axis(x, name=y) for x, y in ((3, "r"), (channels, "c"))
        )  # fmt: skip
        self.add(
            (2 * n + 1, width),
            lambda i, o: b.sum(between[i + r, c] * w[2 - r, c, o], axis=(r, c)),
        )

    def narrow_product(self) -> None:
        """A product of 8-bit integers, summed in 32 bits."""
        n, m, depth = (self.extent() for _ in range(3))
        kinds = [("uint8", "int8"), ("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8")]
        left, right = self.pick(kinds)
        x, axis = self.input((n, depth), left), reduce_axis(depth, name="k")
        own = left == right and self.rng.random() < 0.5
        w, m = (x, n) if own else (self.input((depth, m), right), m)

        def at(i: Expr, j: Expr) -> Expr:
            second = x[j, axis] if own else w[axis, j]
            return b.sum(x[i, axis].astype("int32") * second.astype("int32"), axis=axis)

        total = compute((n, m), at, name=self.named("dot"))
        self.add((n, m), lambda i, j: total[i, j].astype("float32") * 0.001)
