"""Minimal filtering: a convolution as small transforms and one batched product over channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod, sqrt

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir import builders
from ansorpy.ir.atoms import most
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, AxisKind, Expr, as_expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.convolution import Convolution, Window, find_convolutions
from ansorpy.rules.algorithms.toom_cook import Matrices, Matrix, Row, matrices
from ansorpy.rules.algorithms.transposed import find_transposed
from ansorpy.schedule.lowering.dag_edit import replace_ops
from ansorpy.target import Target

__all__ = ["Winograd", "winograd"]


@dataclass(frozen=True)
class Winograd(Algorithm):
    """Winograd convolution: stride 1, constant weight, any number of windows.

    A dilated window is treated as a batch of undilated ones, one per residue.

    Output tiles are ranked by an estimate from their products (padded tiles included), transform
    arithmetic and bytes of transformed weights.  The algorithm offers up to ``offers`` each for
    weights in a cache and in memory, and only those estimated to be cheaper than the direct
    convolution.

    Source: Lavin & Gray 2016; the matrices are from :mod:`ansorpy.rules.algorithms.toom_cook`.
    """

    tiles: tuple[int, ...] = (2, 3, 4, 5)
    largest: int = 6
    offers: int = 2

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        transposed = {conv.op for conv in find_transposed(dag)}
        for conv in find_convolutions(dag):
            if conv.op in transposed or not _applies(dag, conv):
                continue
            for sizes in self._promising(conv, target):
                yield winograd(dag, conv, sizes)

    def rewrite_for_all(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """Every tile: which ones are promising depends on the sizes."""
        transposed = {conv.op for conv in find_transposed(dag)}
        for conv in find_convolutions(dag):
            if conv.op not in transposed and _applies(dag, conv):
                for sizes in self.tiles_of(conv):
                    yield winograd(dag, conv, sizes)

    def _promising(self, conv: Convolution, target: Target) -> list[tuple[int, ...]]:
        """The best tiles if transformed weights are read from a cache, and if from memory."""
        direct, found = _direct_cycles(conv, target), dict[tuple[int, ...], None]()
        for rate in (BYTES_FROM_CACHE, BYTES_FROM_MEMORY):
            ranked = sorted((_cycles(conv, s, target, rate), s) for s in self.tiles_of(conv))
            sizes = _without_mirrored(conv, [s for cycles, s in ranked if cycles < direct])
            found |= dict.fromkeys(sizes[: self.offers])
        return list(found)

    def tiles_of(self, conv: Convolution) -> Iterable[tuple[int, ...]]:
        """The possible output tile sizes, one per window; at least one is larger than 1."""
        options = [
            [m for m in self.tiles if m + w.tap.extent - 1 <= self.largest]
            if w.tap.extent > 1 else [1]
            for w in conv.windows
        ]  # fmt: skip
        return (sizes for sizes in product(*options) if max(sizes) > 1)


def _applies(dag: ComputeDAG, conv: Convolution) -> bool:
    plain = all(w.stride == 1 and w.offset >= 0 for w in conv.windows)
    wide = conv.op.dtype in (DType.FLOAT32, DType.FLOAT64)
    return plain and wide and bool(conv.channels) and conv.weight in dag.constant_ops


def _without_mirrored(
    conv: Convolution, options: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """*options* without those that only swap sizes between windows of equal extent and taps."""
    kinds = [(w.out.extent, w.tap.extent, w.dilation) for w in conv.windows]
    found: dict[object, tuple[int, ...]] = {}
    for sizes in options:
        found.setdefault(tuple(sorted(zip(kinds, sizes, strict=True))), sizes)
    return list(found.values())


def _direct_cycles(conv: Convolution, target: Target) -> float:
    """Estimated cycles of the direct convolution on one core, at two vector products per cycle."""
    taps = prod(w.tap.extent for w in conv.windows)
    spots = prod(w.out.extent for w in conv.windows)
    return _multiplies(conv) * taps * spots / (lanes_of(conv.op, target) * 2)


def _multiplies(conv: Convolution) -> int:
    """Products per output position and tap."""
    return prod(a.extent for a in (*conv.kept, *conv.channels, *conv.out_channels))


def _cycles(conv: Convolution, sizes: Sequence[int], target: Target, bytes_a_cycle: int) -> float:
    """Estimated cycles on one core: products, transforms, and reading transformed weights."""
    sides = [m + w.tap.extent - 1 for m, w in zip(sizes, conv.windows, strict=True)]
    tiles = prod(w.dilation * _tiles(w, m) for m, w in zip(sizes, conv.windows, strict=True))
    points, batch = prod(sides), prod(a.extent for a in conv.kept)
    inputs, outputs = (prod(a.extent for a in axes) for axes in (conv.channels, conv.out_channels))
    # Each 1-d transform combines about half the points of a side per result.
    transforms = tiles * points * batch * (inputs + outputs) * sum(s / 2 for s in sides)
    vector = lanes_of(conv.op, target) * 2
    weights = points * inputs * outputs * conv.op.dtype.bytes / bytes_a_cycle
    return (tiles * points * _multiplies(conv) + transforms) / vector + weights


def _tiles(window: Window, size: int) -> int:
    """Number of tiles of *size* outputs per residue."""
    return -(-window.out.extent // (window.dilation * size))


BYTES_FROM_CACHE, BYTES_FROM_MEMORY = 32, 6
"""Bytes of transformed weights that a core reads per cycle, from L2 or L3 and from memory."""


def winograd(dag: ComputeDAG, conv: Convolution, sizes: Sequence[int]) -> Definition:
    """*dag* with *conv* computed in output tiles of *sizes*, one size per window.

    The stages, with channels innermost so that all can be vectorized over channels:

        fit:   the data, channels last, with separate residues of dilated windows, zero where tiles
               reach beyond the data
        V:     [points of a tile..., kept..., tiles..., channels...], a 1-d transform per window
        U:     [points of a tile..., kept..., channels..., outputs...], at bind time
        M:     V times U, summed over channels
        Y:     [kept..., tiles..., positions in a tile..., outputs...], a 1-d transform per window
        the convolution with its own name and axes, which reads Y
    """
    made = _Stages(
        conv, [matrices(m, w.tap.extent) for m, w in zip(sizes, conv.windows, strict=True)]
    )
    replaced, _ = replace_ops(dag, {conv.op: made.result()})
    name = f"winograd({'x'.join(str(m) for m in sizes)})"
    return Definition(name, replaced, made.error)


class _Stages:
    """Builds the stages of one convolution, producers first.

    Dimension names: ``n`` kept axes and residues, ``t`` tiles, ``p`` points of a transformed
    tile, ``e`` elements not transformed yet, ``s`` positions in an output tile, ``c`` channels,
    ``o`` outputs, ``k`` taps.
    """

    def __init__(self, conv: Convolution, forms: Sequence[Matrices]) -> None:
        self.conv = conv
        self.forms = forms
        self.windows = range(len(forms))
        self.tiles = tuple(_tiles(w, f.m) for w, f in zip(conv.windows, forms, strict=True))
        self.sides = tuple(f.m + f.r - 1 for f in forms)
        self.kept, self.channels, self.outputs = (
            tuple(a.extent for a in axes) for axes in (conv.kept, conv.channels, conv.out_channels)
        )
        self.dilated = [w for w in conv.windows if w.dilation > 1]
        self.kept += tuple(w.dilation for w in self.dilated)

    @property
    def error(self) -> float:
        """Rounding error beyond that of the direct sum, as a fraction of the largest output.

        This assumes a sum over C channels of products that are each off by ``growth`` roundings.
        """
        growth = prod(form.growth for form in self.forms)
        return self.conv.op.dtype.epsilon * growth * sqrt(prod(self.channels)) / 2

    def result(self) -> ComputeOp:
        """The operator that replaces the convolution."""
        conv, y = self.conv, self._outputs(self._products(self._inputs(), self._weights()))
        axes = tuple(Axis(a.name, a.extent, AxisKind.SPACE) for a in conv.op.axes)
        at = dict(zip(conv.op.axes, axes, strict=True))
        spots = [
            (at[w.out], w.dilation, form.m)
            for w, form in zip(conv.windows, self.forms, strict=True)
        ]
        body = y[
            *(at[a] for a in conv.kept),
            *(at[w.out] % w.dilation for w in self.dilated),
            *(_quotient(h, d * m) for h, d, m in spots),
            *(as_expr(0) if m == 1 else _quotient(h, d) % m for h, d, m in spots),
            *(at[a] for a in conv.out_channels),
        ]
        attrs = replace(conv.op.attrs, error=conv.op.attrs.error + self.error)
        return ComputeOp(conv.op.name, conv.op.shape, axes, (), body, attrs)

    def _stage(self, name: str, dims: Sequence[tuple[str, Sequence[int]]], fn: Fn) -> ComputeOp:
        """A stage with groups of dimensions; *fn* takes one list of axes per group."""
        names = [f"{letter}{k}" for letter, extents in dims for k in range(len(extents))]
        shape = [extent for _, extents in dims for extent in extents]

        def body(*axes: Expr) -> Expr:
            rest = iter(axes)
            return fn(*([next(rest) for _ in extents] for _, extents in dims))

        return compute(shape, body, name=f"{self.conv.op.name}.{name}", names=names)

    def _fitted(self) -> Tensor:
        """The data as ``[kept..., windows..., channels...]``, in the range that tiles reach."""
        conv = self.conv
        lengths = [t * f.m + f.r - 1 for t, f in zip(self.tiles, self.forms, strict=True)]
        by_axis = {axis: dim for dim, axis in conv.data_axes}
        order = [
            *(by_axis[a] for a in conv.kept),
            *(w.dim for w in conv.windows),
            *(by_axis[a] for a in conv.channels),
        ]
        inside = [conv.data.shape[w.dim] - w.offset for w in conv.windows]
        plain = not any(w.offset for w in conv.windows) and order == sorted(order)
        plain = plain and not self.dilated
        if plain and lengths == inside:
            return conv.data

        def value(n: list[Expr], e: list[Expr], c: list[Expr]) -> Expr:
            reached = self._undilated(n[len(conv.kept) :], e)
            at = [
                x + w.offset if w.offset else x for x, w in zip(reached, conv.windows, strict=True)
            ]
            indices = dict(zip(order, (*n[: len(conv.kept)], *at, *c), strict=True))
            read = conv.data[tuple(indices[dim] for dim in range(conv.data.ndim))]
            ends = [n * w.dilation for n, w in zip(lengths, conv.windows, strict=True)]
            beyond = [x < limit for x, limit, end in zip(reached, inside, ends, strict=True)
                      if most(end - limit) > 0]  # fmt: skip
            return builders.select(builders.all_of(*beyond), read, 0.0) if beyond else read

        return self._stage("fit", [("n", self.kept), ("e", lengths), ("c", self.channels)], value)

    def _undilated(self, residues: Sequence[Expr], elements: Sequence[Expr]) -> list[Expr]:
        """The position in each window of the given *elements* of *residues*."""
        by_window = dict(zip(self.dilated, residues, strict=True))
        return [
            x * w.dilation + by_window[w] if w in by_window else x
            for x, w in zip(elements, self.conv.windows, strict=True)
        ]

    def _inputs(self) -> Tensor:
        """``[points..., kept..., tiles..., channels...]``, by successive 1-d transforms."""
        read, last = self._fitted(), len(self.forms) - 1
        for d, form in enumerate(self.forms):
            is_first = d == 0

            def value(
                p: list[Expr], n: list[Expr], t: list[Expr], e: list[Expr], c: list[Expr],
                d: int = d, form: Matrices = form, read: Tensor = read, is_first: bool = is_first,
            ) -> Expr:  # fmt: skip
                def element(k: int) -> Expr:
                    if not is_first:
                        return read[(*n, *t, *p[:-1], as_expr(k), *e, *c)]
                    within = [as_expr(k), *e]
                    spots = [
                        tile * f.m + x for tile, f, x in zip(t, self.forms, within, strict=True)
                    ]
                    return read[(*n, *spots, *c)]

                return combined(p[-1], form.b, element)

            read = self._input_stage(d, value, to_front=d == last)
        return read

    def _input_stage(self, d: int, value: Fn, *, to_front: bool) -> ComputeOp:
        p, e = ("p", self.sides[: d + 1]), ("e", self.sides[d + 1 :])
        n, t, c = ("n", self.kept), ("t", self.tiles), ("c", self.channels)
        if to_front:
            return self._stage("V", [p, n, t, c], lambda p, n, t, c: value(p, n, t, [], c))
        return self._stage(f"V{d}", [n, t, p, e, c], lambda n, t, p, e, c: value(p, n, t, e, c))

    def _weights(self) -> Tensor:
        """The weight as ``[points..., (kept...), channels..., outputs...]``, made at bind time."""
        conv = self.conv
        shared = [a for a in conv.kept if a in conv.weight_axes]
        rest = [*shared, *conv.channels, *conv.out_channels]
        read: Tensor = conv.weight
        for d, form in enumerate(self.forms):
            taps = [w.tap.extent for w in conv.windows[d + 1 :]]

            def value(
                p: list[Expr], k: list[Expr], r: list[Expr],
                d: int = d, form: Matrices = form, read: Tensor = read,
            ) -> Expr:  # fmt: skip
                def tap(at: int) -> Expr:
                    if d:
                        return read[(*p[:-1], as_expr(at), *k, *r)]
                    axes = [*(w.tap for w in conv.windows), *rest]
                    by_axis = dict(zip(axes, (as_expr(at), *k, *r), strict=True))
                    return read[tuple(by_axis[axis] for axis in conv.weight_axes)]

                return combined(p[-1], form.g, tap)

            dims = [("p", self.sides[: d + 1]), ("k", taps), ("r", [a.extent for a in rest])]
            read = self._stage(f"U{d}" if taps else "U", dims, value)
        return read

    def _products(self, v: Tensor, u: Tensor) -> Tensor:
        """``M``: the product over channels at each point."""
        conv = self.conv
        shared = [k for k, a in enumerate(conv.kept) if a in conv.weight_axes]
        depth = tuple(reduce_axis(n, name=f"c{k}") for k, n in enumerate(self.channels))

        def value(p: list[Expr], n: list[Expr], t: list[Expr], o: list[Expr]) -> Expr:
            with_weight = u[(*p, *(n[k] for k in shared), *depth, *o)]
            return builders.sum(v[(*p, *n, *t, *depth)] * with_weight, axis=depth)

        dims = [("p", self.sides), ("n", self.kept), ("t", self.tiles), ("o", self.outputs)]
        return self._stage("M", dims, value)

    def _outputs(self, products: Tensor) -> Tensor:
        """``[kept..., tiles..., positions..., outputs...]``, by successive 1-d transforms."""
        read = products
        for d, form in enumerate(self.forms):

            def value(
                n: list[Expr], t: list[Expr], s: list[Expr], p: list[Expr], o: list[Expr],
                d: int = d, form: Matrices = form, read: Tensor = read,
            ) -> Expr:  # fmt: skip
                def point(k: int) -> Expr:
                    if d:
                        return read[(*n, *t, *s[:-1], as_expr(k), *p, *o)]
                    return read[(as_expr(k), *p, *n, *t, *o)]

                return combined(s[-1], form.a, point)

            spots, points = [f.m for f in self.forms[: d + 1]], self.sides[d + 1 :]
            dims = [("n", self.kept), ("t", self.tiles), ("s", spots), ("p", points),
                    ("o", self.outputs)]  # fmt: skip
            read = self._stage(f"Y{d}", dims, value)
        return read


def _quotient(x: Expr, divisor: int) -> Expr:
    return x if divisor == 1 else x // divisor


Fn = Callable[..., Expr]


def combined(index: Expr, matrix: Matrix, element: Callable[[int], Expr]) -> Expr:
    """Row *index* of *matrix* times the vector *element*: a select among sums without zero terms.

    Each element is a single node, so all rows share its load.
    """
    elements = [element(k) for k in range(len(matrix[0]))]
    rows = [_row(row, elements) for row in matrix]
    chosen = rows[-1]
    for number in reversed(range(len(rows) - 1)):
        chosen = builders.select(index.equal(number), rows[number], chosen)
    return chosen


def _row(row: Row, elements: Sequence[Expr]) -> Expr:
    total: Expr | None = None
    for factor, x in zip(row, elements, strict=True):
        if not factor:
            continue
        size = abs(float(factor))
        term = x if size == 1 else x * size
        if total is None:
            total = term if factor > 0 else -term
        else:
            total = total + term if factor > 0 else total - term
    assert total is not None, "every row of an invertible transform has an entry"
    return total
