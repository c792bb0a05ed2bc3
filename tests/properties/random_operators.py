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
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute, placeholder, reduce_axis
from tests import workloads
from tests.properties.random_elements import Elements, accumulated, number, random_type, reducers

__all__ = ["random_definition"]

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 20, 24, 31)
MOST = 6000
"""Elements of a tensor."""


def random_definition(
    rng: np.random.Generator, types: Sequence[DType] = (DType.FLOAT32,), more: float = 0.75
) -> ComputeDAG:
    """Random operators on tensors of some of *types*, each followed by another with chance *more*.

    Now and then it is Winograd's convolution, which is too special to be hit.
    """
    if rng.random() < 0.06:
        return ComputeDAG.of(workloads.winograd(1, 5, 4, 2, 2))
    return Operators(rng, types).definition(more)


class Operators:
    """A pool of tensors that grows by one random operator at a time."""

    def __init__(self, rng: np.random.Generator, types: Sequence[DType]) -> None:
        self.rng = rng
        self.types = types
        self.elements = Elements(rng)
        self.pool: list[Tensor] = []
        self.exact: set[Tensor] = set()
        """Floats without rounding errors, which may decide something."""
        self.count = 0
        shape = [self.extent() for _ in range(int(rng.integers(0, 4)))]
        while math.prod(shape) > MOST:
            shape.pop()
        self.input(shape, random_type(rng, types))

    def definition(self, more: float) -> ComputeDAG:
        actions = (
            self.unary, self.binary, self.rearranged, self.reduced, self.normalised, self.product,
            self.product, self.convolution, self.convolution, self.joined, self.gathered,
            self.spread, self.narrow_product, self.copied, self.neighbours, self.own_product,
            self.converted, self.chosen, self.best,
        )  # fmt: skip
        while not self.computes() or self.rng.random() < more:
            self.pick(actions)()
            self.pool = [t for t in self.pool if t.size <= MOST]
        computes = self.computes()
        extra = [self.pick(computes) for _ in range(2) if self.rng.random() < 0.2]
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

    def input(self, shape: Sequence[int], dtype: DType) -> PlaceholderOp:
        constant = bool(self.pool) and self.rng.random() < 0.5
        made = placeholder(shape, dtype, name=self.named("p"), constant=constant)
        self.pool += [made] if not self.pool else []
        self.exact.add(made)
        return made

    def add(self, shape: Sequence[int], fn: Callable[..., Expr]) -> ComputeOp:
        names = tuple(f"i{d}" for d in range(len(shape)))
        made = compute(shape, fn, name=self.named("t"), names=names)
        self.pool.append(made)
        return made

    def unary(self) -> None:
        t = self.recent()
        fn = self.elements.unary(t.dtype)
        self.add(t.shape, lambda *i: fn(t[i]))

    def binary(self) -> None:
        t = self.recent()
        other = self.pick([u for u in self.pool if u.shape == t.shape and u.dtype is t.dtype])
        if self.rng.random() < 0.4:
            shape = [n if self.rng.random() < 0.5 else 1 for n in t.shape]
            other = self.input(shape, t.dtype)
        fn = self.elements.binary(t.dtype)

        def at(*i: Expr) -> Expr:
            there = (x if n > 1 else 0 for x, n in zip(i, other.shape, strict=True))
            return fn(t[i], other[tuple(there)])

        self.add(t.shape, at)

    def converted(self) -> None:
        """Another type's values."""
        t = self.recent()
        to = random_type(self.rng, self.types)
        fn = self.elements.converted(t.dtype, to, exact=t in self.exact)
        if fn is not None:
            self.add(t.shape, lambda *i: fn(t[i]))

    def chosen(self) -> None:
        """One of two values, as a tensor of booleans or the parity of the indices says."""
        t = self.recent()
        conditions = [u for u in self.pool if u.shape == t.shape and u.dtype is DType.BOOL]
        conditions += [self.input(t.shape, DType.BOOL)] if DType.BOOL in self.types else []
        fn = self.elements.slight(t.dtype)
        if conditions:
            flags = self.pick(conditions)
            self.add(t.shape, lambda *i: b.select(flags[i], t[i], fn(t[i])))
        elif t.ndim:
            self.add(t.shape, lambda *i: b.select((sum(i) % 2).equal(0), t[i], fn(t[i])))

    def best(self) -> None:
        """Where the largest or the smallest value of each row is."""
        t = self.recent()
        if t.ndim == 0 or t.dtype is DType.BOOL or (t.dtype.is_float and t not in self.exact):
            return
        fn = self.pick([b.argmax, b.argmin])
        self.pool.append(
            fn(
                t.shape[:-1],
                lambda *i: t[i],
                t.shape[-1],
                name=self.named("t"),
                last=bool(self.rng.integers(2)),
            )
        )

    def rearranged(self) -> None:
        """A transpose, every n-th element from an offset, or two axes as one."""
        t = self.recent()
        if t.ndim < 2:
            return
        kind, fn = int(self.rng.integers(3)), self.elements.slight(t.dtype)
        if kind == 0:
            order = [int(d) for d in self.rng.permutation(t.ndim)]
            moved = self.moved(t, order)
            self.add([t.shape[d] for d in order], lambda *i: fn(moved(*i)))
        elif kind == 1:
            step, start = int(self.rng.integers(1, 4)), int(self.rng.integers(t.shape[0]))
            shape = [(t.shape[0] - start - 1) // step + 1, *t.shape[1:]]
            self.add(shape, lambda i, *rest: fn(t[(i * step + start, *rest)]))
        else:
            n = t.shape[1]
            shape = [t.shape[0] * n, *t.shape[2:]]
            self.add(shape, lambda i, *rest: fn(t[(i // n, i % n, *rest)]))

    def copied(self) -> None:
        """A copy of a copy, the axes perhaps in another order, as the operand of a product."""
        t = self.recent()
        order = [int(d) for d in self.rng.permutation(t.ndim)]
        turned = self.add([t.shape[d] for d in order], self.moved(t, order))
        again = self.add(turned.shape, self.moved(turned, sorted(order)))
        self.exact |= {turned, again} if t in self.exact else set()
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
        fn = self.elements.binary(t.dtype)

        def at(*i: Expr) -> Expr:
            before = t[tuple(x - 1 if d == along else x for d, x in enumerate(i))]
            other = b.select(i[along] >= 1, before, number(0, t.dtype))
            return fn(other, t[i]) if both else other

        self.add(t.shape, at)

    def own_product(self) -> None:
        """The products of all rows, or columns, of one tensor, perhaps scaled by one element."""
        t = self.recent()
        if t.ndim < 2 or t.dtype is DType.BOOL:
            return
        summed = int(self.pick([t.ndim - 2, t.ndim - 1]))
        k, rows = reduce_axis(t.shape[summed], name="k"), t.shape[2 * t.ndim - 3 - summed]
        wide = self.summed(t.dtype)
        scale = self.input((), wide) if self.rng.random() < 0.5 else None

        def at(*i: Expr) -> Expr:
            def row(x: Expr) -> Expr:
                return t[(*i[:-2], k, x) if summed == t.ndim - 2 else (*i[:-2], x, k)].astype(wide)

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
        is_number = t.dtype is not DType.BOOL
        wide = self.summed(t.dtype) if is_number else t.dtype
        fn, squares = self.pick(reducers(wide)), is_number and self.rng.random() < 0.5

        def at(*i: Expr) -> Expr:
            every = {**dict(zip(kept, i, strict=True)), **axes}
            x = t[tuple(every[d] for d in range(t.ndim))].astype(wide)
            value: Expr = fn(x * x if squares else x, axis=tuple(axes.values()))
            return value

        self.add([t.shape[d] for d in kept], at)

    def summed(self, dtype: DType) -> DType:
        """The type in which a sum of products is computed: as networks do, or that of the factors.

        Booleans are counted.
        """
        if dtype is DType.BOOL or self.rng.random() < 0.7:
            return accumulated(dtype)
        return dtype

    def normalised(self) -> None:
        t = self.recent()
        if t.ndim == 0 or not t.dtype.is_float:
            return
        k = reduce_axis(t.shape[-1], name="k")
        total = self.add(t.shape[:-1], lambda *i: b.sum(t[(*i, k)] * t[(*i, k)], axis=k))
        self.add(t.shape, lambda *i: t[i] / (total[i[:-1]] + 1.0))

    def product(self) -> None:
        t, width = self.recent(), self.extent()
        if t.ndim == 0:
            return
        wide = self.summed(t.dtype)
        k, across = reduce_axis(t.shape[-1], name="k"), self.rng.random() < 0.4
        w = self.input((width, t.shape[-1]) if across else (t.shape[-1], width), t.dtype)

        def at(*i: Expr) -> Expr:
            weight = w[i[-1], k] if across else w[k, i[-1]]
            return b.sum(t[(*i[:-1], k)].astype(wide) * weight.astype(wide), axis=k)

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
            return b.select(inside, t[(*i[:-2], i[-2] - pad, i[-1])], number(0, t.dtype))

        source = self.add((*t.shape[:-2], n + 2 * pad, channels), bordered)
        r, c = reduce_axis(size, name="r"), reduce_axis(channels, name="c")
        depthwise, wide = self.rng.random() < 0.3, self.summed(t.dtype)
        w = self.input((size, channels) if depthwise else (size, channels, width), t.dtype)

        def at(*i: Expr) -> Expr:
            place, last = i[-2] * step + r * gap, i[-1] if depthwise else c
            weight = w[r, i[-1]] if depthwise else w[r, c, i[-1]]
            product = source[(*i[:-2], place, last)].astype(wide) * weight.astype(wide)
            return b.sum(product, axis=r if depthwise else (r, c))

        self.add((*t.shape[:-2], out, channels if depthwise else width), at)

    def joined(self) -> None:
        """Two tensors one after the other along their first axis."""
        t = self.recent()
        if t.ndim == 0:
            return
        alike = [u for u in self.pool if u.dtype is t.dtype and u.ndim]
        other = self.pick([u for u in alike if u.shape[1:] == t.shape[1:]])
        n = t.shape[0]
        self.add(
            (n + other.shape[0], *t.shape[1:]),
            lambda i, *rest: b.select(i < n, t[(i, *rest)], other[(i - n, *rest)]),
        )

    def gathered(self) -> None:
        t = self.recent()
        if t.ndim == 0:
            return
        kinds = [dtype for dtype in self.types if dtype.is_int] or [DType.INT32]
        computed = [u for u in self.pool if u.dtype.is_int and u.ndim == 1]
        drawn = self.input((self.extent(),), self.pick(kinds))
        at, n = self.pick([drawn, *computed]), t.shape[0]
        fn = self.pick([lambda v: v, self.elements.slight(t.dtype)])
        self.add(
            (*at.shape, *t.shape[1:]),
            lambda i, *rest: fn(t[(at[i].astype("int64") % n, *rest)]),
        )

    def spread(self) -> None:
        """A transposed convolution of stride 2: zeros between the elements, then a convolution."""
        t, width = self.recent(), self.extent()
        if t.ndim != 2 or t.dtype is DType.BOOL:
            return
        n, channels = t.shape
        between = self.add(
            (2 * n + 3, channels),
            lambda i, j: b.select(
                (i >= 2) & (i < 2 * n + 1) & (i % 2).equal(0),
                t[(i - 2) // 2, j],
                number(0, t.dtype),
            ),
        )
        w, r, c = self.input((3, channels, width), t.dtype), *(
            reduce_axis(x, name=y) for x, y in ((3, "r"), (channels, "c"))
        )  # fmt: skip
        self.add(
            (2 * n + 1, width),
            lambda i, o: b.sum(between[i + r, c] * w[2 - r, c, o], axis=(r, c)),
        )

    def narrow_product(self) -> None:
        """A product of 8-bit integers, summed in 32 bits."""
        n, m, depth = (self.extent() for _ in range(3))
        left, right = (self.pick((DType.INT8, DType.UINT8)) for _ in range(2))
        x, axis = self.input((n, depth), left), reduce_axis(depth, name="k")
        own = left == right and self.rng.random() < 0.5
        w, m = (x, n) if own else (self.input((depth, m), right), m)

        def at(i: Expr, j: Expr) -> Expr:
            second = x[j, axis] if own else w[axis, j]
            return b.sum(x[i, axis].astype("int32") * second.astype("int32"), axis=axis)

        total = compute((n, m), at, name=self.named("dot"))
        self.add((n, m), lambda i, j: total[i, j].astype("float32") * 0.001)
