"""Attention in blocks of keys, whose partial results are rescaled to a common maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ansorpy.ir import builders
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Expr,
    ExprLike,
    Load,
    Reduce,
    Var,
    walk,
)
from ansorpy.ir.extents import Extent, extreme, most, multiple_of
from ansorpy.ir.operands import without_casts
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.symbols import SizeOp
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.softmax import (
    WeightedSum,
    find_weighted_sums,
    narrowest,
    times_weight,
)
from ansorpy.schedule.decisions import VECTOR
from ansorpy.schedule.lowering.dag_edit import map_loads, replace_ops, unused_name
from ansorpy.target import Target

__all__ = ["KeyBlocks", "key_blocks"]


@dataclass(frozen=True)
class KeyBlocks(Algorithm):
    """Attention one block of keys at a time: each has its own maximum, sums and products.

        top[i] = max_j x[i, j]                   top[i, b] = max_j x[i, b, j]
        e[i, j] = exp(x[i, j] - top[i])          e[i, b, j] = exp(x[i, b, j] - top[i, b])
        total[i] = sum_j e[i, j]           -->   parts[i, b] = (sum_j e * v, sum_j e, top)[i, b]
        mixed[i, o] = sum_j e[i, j] * v[j, o]    share[i, b] = exp(top[i, b] - max_b top[i, b])
                                                 total[i] = sum_b share * parts
                                                 mixed[i, o] = sum_b share * parts

    The scores of one block stay in a cache however many keys there are.  The algorithm is offered
    if there are at least two blocks of the longest length that the cache allows.

    Source: Milakov & Gimelshein 2018 (rescaling); Dao et al. 2023, "Flash-Decoding" (the parts).

    Args:
        rows: Rows of scores that are assumed to be computed together, so that keys and values are
            read from a cache.
        gpu_rows: The same on GPUs, where keys and values pass through small tiles instead, and
            scores are kept in shared memory.
        share: Fraction of that cache (CUDA: of a block's shared memory) for one block of keys.
        least: Length that is always allowed.
    """

    rows: int = 64
    gpu_rows: int = 32
    share: float = 0.5
    least: int = 64

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for weighted in find_weighted_sums(dag):
            keys: Extent = weighted.keys.extent
            longest = self.longest(weighted, target)
            if most(keys) >= 2 * longest:
                length = _even(keys, longest) if isinstance(keys, int) else longest
                yield key_blocks(dag, weighted, length, tiled=bool(target.warp_size))

    def rewrite_for_all(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """Blocks of any number of keys have the longest length."""
        return self.rewrite(dag, target)

    def longest(self, weighted: WeightedSum, target: Target) -> int:
        """The number of keys of the longest block: a power of two."""
        score = weighted.raised.dtype.bytes
        if target.warp_size:
            return self._fitting(target.max_shared_optin_bytes, self.gpu_rows * score)
        summed = (axis.extent for op in weighted.along for axis in op.reduce_axes)
        features = sum(map(most, (*summed, *(axis.extent for axis in weighted.columns))))
        each = self.rows * score + features * weighted.mixed.dtype.bytes
        return self._fitting(target.l2_bytes, each)

    def _fitting(self, room: int, each: int) -> int:
        number = max(int(self.share * room / each), 1)
        return max(self.least, 1 << number.bit_length() - 1)


def _even(keys: int, longest: int) -> int:
    """The length of as few blocks, but equal ones, or whole vectors if *keys* has no such part."""
    blocks = -(-keys // longest)
    length = -(-keys // blocks)
    return length if keys % blocks == 0 else -(-length // VECTOR) * VECTOR


def key_blocks(
    dag: ComputeDAG, weighted: WeightedSum, length: int, *, tiled: bool = False
) -> Definition:
    """*dag* with *weighted* computed from blocks of *length* keys.

    The last block starts earlier if it would reach beyond the keys; those of them that belong to
    the block before it do not count.  If there are fewer keys than *length*, they are one block.
    With *tiled*, products read keys and values through stages whose index is that in the block, so
    that tiles of them are boxes wherever the block starts.
    """
    made = _Stages(weighted, length, tiled=tiled)
    replaced, _ = replace_ops(dag, {weighted.mixed: made.mixed(), weighted.total: made.total()})
    return Definition(f"key_blocks({length})", replaced, made.error)


class _Stages:
    """Builds the stages of one weighted sum, producers first.

    Values that are summed have the type ``dtype``; ``rows`` and ``columns`` are extents.
    """

    def __init__(self, weighted: WeightedSum, length: int, *, tiled: bool) -> None:
        self.of = weighted
        keys: Extent = weighted.keys.extent
        self.dtype = weighted.mixed.dtype.of_sums
        self.step = length
        self.blocks = -(-keys // length)
        self.divides = multiple_of(keys) % length == 0
        self.length = length if self.divides else extreme(SizeOp.MIN, length, keys)
        self.before = keys - self.length
        self.tiled = tiled and not self.divides
        self.rows = [axis.extent for axis in weighted.rows]
        self.columns = [axis.extent for axis in weighted.columns]
        self._made: dict[tuple[Tensor, int], ComputeOp] = {}
        self._parts = self._packed()
        self._peak = self._highest()
        self._share = self._shares()

    @property
    def error(self) -> float:
        """Error of exponents that are rounded twice, and of one more product."""
        return 4 * self.dtype.epsilon

    # Blocks of keys

    def _start(self, block: Expr) -> Expr:
        """The first key of *block*."""
        first = block * self.step
        return first if self.divides else builders.minimum(first, self.before)

    def _blocked(self, op: ComputeOp) -> ComputeOp:
        """A stage of ``along`` with its keys in blocks: ``[.., block, key, ..]``."""
        dim = self.of.along[op]
        if (op, dim) not in self._made:

            def body(at: Mapping[Axis, Expr], block: Expr, key: Expr) -> Expr:
                summed = isinstance(op.body, Reduce)
                return self._at(op.body, op.axes[dim], at, block, key, summed=summed)

            self._made[op, dim] = self._in_blocks(op, dim, op.axes, body)
        return self._made[op, dim]

    def _view(self, tensor: Tensor, dim: int) -> ComputeOp:
        """The elements of *tensor* with dimension *dim* in blocks."""
        if (tensor, dim) not in self._made:
            names = _numbered("i", tensor.ndim)
            axes = [
                Axis(name, n, AxisKind.SPACE) for name, n in zip(names, tensor.shape, strict=True)
            ]

            def body(at: Mapping[Axis, Expr], block: Expr, key: Expr) -> Expr:
                places = [at[axis] for axis in axes]
                places[dim] = self._start(block) + key
                return tensor[tuple(places)]

            self._made[tensor, dim] = self._in_blocks(tensor, dim, axes, body)
        return self._made[tensor, dim]

    def _in_blocks(
        self, tensor: Tensor, dim: int, axes: Sequence[Axis],
        body: Callable[[Mapping[Axis, Expr], Expr, Expr], Expr],
    ) -> ComputeOp:  # fmt: skip
        """A stage named after *tensor*, with two axes for number *dim* of *axes*."""
        names, shape = [axis.name for axis in axes], [axis.extent for axis in axes]
        taken = (*axes, *getattr(tensor, "reduce_axes", ()))
        names.insert(dim, unused_name("block", taken))
        shape[dim : dim + 1] = [self.blocks, self.length]

        def value(*at: Expr) -> Expr:
            block, key = at[dim : dim + 2]
            by_axis = dict(zip(axes, (*at[:dim], key, *at[dim + 2 :]), strict=True))
            return body(by_axis, block, key)

        attrs = tensor.attrs if isinstance(tensor, ComputeOp) else None
        return compute(shape, value, name=f"{tensor.name}.part", names=names, attrs=attrs)

    def _at(
        self, e: Expr, keys: Axis, at: Mapping[Axis, Expr], block: Expr, key: Expr, *,
        summed: bool = False,
    ) -> Expr:  # fmt: skip
        """*e*, which may be *summed*, at number *key* of *block*, other axes being *at*.

        It reads blocked stages.
        """

        def moved(load: Load) -> Expr:
            source = load.source
            assert isinstance(source, Tensor)
            places = [d for d, index in enumerate(load.indices) if keys in walk(index)]
            if len(places) != 1 or load.indices[places[0]] is not keys:
                return load
            (dim,) = places
            if isinstance(source, ComputeOp) and source in self.of.along:
                read = self._blocked(source)
            elif self.tiled and summed:
                read = self._view(source, dim)
            else:
                return load
            return Load(read, (*load.indices[:dim], block, key, *load.indices[dim + 1 :]))

        values: dict[Var, Expr] = {}
        values.update(at.items())
        values[keys] = self._start(block) + key
        return substitute(map_loads(e, moved), values)

    def _score(self, rows: Sequence[Expr], block: Expr, key: Expr) -> Expr:
        """A score; ``-inf`` for a key that the block before counts."""
        axes = list(self.of.raised.axes)
        keys = axes.pop(self.of.key)
        score = self._at(self.of.score, keys, dict(zip(axes, rows, strict=True)), block, key)
        if self.divides:
            return score
        return builders.select(self._start(block) + key >= block * self.step, score, -inf)

    def _stage(
        self, op: ComputeOp, part: str, columns: Sequence[Extent], value: Body, letter: str = "o"
    ) -> ComputeOp:
        """A stage ``[rows.., block, columns..]`` named after *op* and *part*."""
        n = len(self.rows)
        names = [*_numbered("r", n), "block", *_numbered(letter, len(columns))]
        return compute(
            [*self.rows, self.blocks, *columns],
            lambda *axes: value(axes[:n], axes[n], axes[n + 1 :]),
            name=f"{op.name}.{part}",
            names=names,
        )

    def _packed(self) -> ComputeOp:
        """For each row and block its products, then their sum and the maximum, side by side.

        One stage has all three, so that a block's scores are needed by its loops alone.
        """
        of = self.of
        top = self._tops()
        raised = self._exponentials(top)
        total, mixed = self._totals(raised), self._products(raised)
        *outer, width = self.columns or [1]

        def value(rows: Exprs, block: Expr, columns: Exprs) -> Expr:
            *around, column = columns
            place = (*around, column) if self.columns else ()
            rest = builders.select(
                column < width + 1, total[(*rows, block)], top[(*rows, block)].astype(self.dtype)
            )
            return builders.select(column < width, mixed[(*rows, block, *place)], rest)

        return self._stage(of.mixed, "parts", [*outer, width + 2], value)

    def _tops(self) -> ComputeOp:
        j = reduce_axis(self.length, name="j")
        return self._stage(
            self.of.top, "part", [],
            lambda rows, block, _: builders.max(self._score(rows, block, j), axis=j),
        )  # fmt: skip

    def _exponentials(self, top: ComputeOp) -> ComputeOp:
        """``[rows.., block, key]``, each relative to the maximum of its block."""

        def value(rows: Exprs, block: Expr, columns: Exprs) -> Expr:
            (key,) = columns
            score = self._score(rows, block, key).astype(self.dtype)
            return self._raised(score - _finite(top[(*rows, block)]).astype(self.dtype)).astype(
                self.of.raised.dtype
            )

        return self._stage(self.of.raised, "part", [self.length], value, "j")

    def _raised(self, above: Expr) -> Expr:
        scale = self.of.scale
        return builders.exp(above if scale is None else above * float(scale.value))

    def _totals(self, raised: ComputeOp) -> ComputeOp:
        j = reduce_axis(self.length, name="j")
        return self._stage(
            self.of.total, "part", [],
            lambda rows, block, _: builders.sum(
                raised[(*rows, block, j)].astype(self.dtype), axis=j
            ),
        )  # fmt: skip

    def _products(self, raised: ComputeOp) -> ComputeOp:
        of = self.of
        j = reduce_axis(self.length, name="j")
        (keys,) = of.mixed.reduce_axes

        def value(rows: Exprs, block: Expr, columns: Exprs) -> Expr:
            at = dict(zip((*of.rows, *of.columns), (*rows, *columns), strict=True))
            other = self._at(of.value, keys, at, block, j, summed=True)
            weight = raised[(*rows, block, j)].astype(narrowest(of.weight))
            return builders.sum(weight.astype(self.dtype) * other.astype(self.dtype), axis=j)

        return self._stage(of.mixed, "part", self.columns, value)

    # Their combination

    def _part(self, rows: Exprs, block: Expr, columns: Exprs = (), beyond: int = 0) -> Expr:
        """A product, or the sum (*beyond* 1) or maximum (2) of a row and block."""
        *outer, width = self.columns or [1]
        place: Sequence[ExprLike] = columns or (0,)
        if beyond:
            place = (*(0 for _ in outer), width + beyond - 1)
        return self._parts[(*rows, block, *place)]

    def _highest(self) -> ComputeOp:
        b = reduce_axis(self.blocks, name="b")
        return compute(
            self.rows,
            lambda *rows: builders.max(self._part(rows, b, beyond=2), axis=b),
            name=f"{self.of.top.name}.peak",
            names=_numbered("r", len(self.rows)),
        )

    def _shares(self) -> ComputeOp:
        """What a block's sums are multiplied by, ``[rows.., block]``.

        A row without finite scores gives NaN, as it does with all keys in one block.
        """
        return self._stage(
            self.of.top, "share", [],
            lambda rows, block, _: self._raised(
                _finite(self._part(rows, block, beyond=2)) - self._peak[tuple(rows)]
            ),
        )  # fmt: skip

    def total(self) -> ComputeOp:
        """The stage that replaces the sum of the exponentials."""
        of, b = self.of, self._block(self.of.total)
        assert isinstance(of.total.body, Reduce)
        read = without_casts(of.total.body.source)
        assert isinstance(read, Load)
        order = [index for index in read.indices if index is not of.total.reduce_axes[0]]

        def value(*axes: Expr) -> Expr:
            at = dict(zip(of.total.axes, axes, strict=True))
            rows = tuple(at[axis] for axis in order if isinstance(axis, Axis))
            part = self._part(rows, b, beyond=1) * self._share[(*rows, b)]
            return builders.sum(part, axis=b)

        return self._result(of.total, value)

    def _block(self, op: ComputeOp) -> Axis:
        """The axis over the blocks for a stage with the axes of *op*."""
        return reduce_axis(self.blocks, name=unused_name("b", op.axes))

    def mixed(self) -> ComputeOp:
        """The stage that replaces the sum of products."""
        of, b = self.of, self._block(self.of.mixed)
        scaled = self._stage(
            of.mixed, "scaled", self.columns,
            lambda rows, block, columns: self._part(rows, block, columns)
            * self._share[(*rows, block)],
        )  # fmt: skip

        def value(*axes: Expr) -> Expr:
            at = dict(zip(of.mixed.axes, axes, strict=True))
            rows, columns = ([at[a] for a in group] for group in (of.rows, of.columns))
            return builders.sum(scaled[(*rows, b, *columns)], axis=b)

        return self._result(of.mixed, value, of.weight)

    def _result(self, op: ComputeOp, value: Fn, weight: Expr | None = None) -> ComputeOp:
        """A stage with the name, shape and type of *op*; *weight* says what else to multiply by."""
        names = [axis.name for axis in op.axes]
        attrs = replace(op.attrs, error=op.attrs.error + self.error)
        plain = weight is None or without_casts(weight) is self.of.read
        if plain and op.dtype is self.dtype:
            return compute(op.shape, value, name=op.name, names=names, attrs=attrs)
        joined = compute(op.shape, value, name=f"{op.name}.joined", names=names)

        def finished(*axes: Expr) -> Expr:
            found = joined[axes]
            if weight is not None:
                found = times_weight(self.of, found, dict(zip(op.axes, axes, strict=True)))
            return found.astype(op.dtype)

        return compute(op.shape, finished, name=op.name, names=names, attrs=attrs)


Exprs = Sequence[Expr]
Body = Callable[[Exprs, Expr, Exprs], Expr]
Fn = Callable[..., Expr]


def _finite(x: Expr) -> Expr:
    """*x*, but not ``-inf``: the lowest finite number is far enough below all other scores."""
    return builders.maximum(x, -x.dtype.normal[1])


def _numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{n}" for n in range(count)]
