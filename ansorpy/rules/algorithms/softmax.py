"""Recognise sums weighted by a softmax (attention) by their structure, in any layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import select
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    ReduceKind,
    Select,
    Var,
    walk,
)
from ansorpy.ir.operands import without_casts
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.exponents import exponent
from ansorpy.schedule.lowering.dag_edit import map_loads

__all__ = ["WeightedSum", "find_weighted_sums", "narrowest", "times_weight"]


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """``mixed[r, o] = sum_j weight(raised[r, j]) * value[j, o]``, a softmax over the keys ``j``.

    ``raised[r, j] = exp((x[r, j] - top[r]) * scale)``, ``top[r] = max_j x[r, j]`` and
    ``total[r] = sum_j raised[r, j]``, with rows ``r`` and columns ``o`` of any number.

    Args:
        weight: The factor of the product, with all stages between it and *raised* inlined.
        value: The other factor.
        read: The load of *raised* in *weight*; *weight* is a linear function of it.
        key: Number of the axis of *raised* that the sums are over.
        rows: For each other axis of *raised*, in order, the axis of *mixed* that indexes it.
        score: ``x``, over the axes of *raised*.
        scale: A positive constant, or None.
        along: The stages that nothing else reads and whose elements are needed for one key only,
            with the number of the axis that runs over keys; among them *raised*.
    """

    mixed: ComputeOp
    weight: Expr
    value: Expr
    read: Load
    raised: ComputeOp
    total: ComputeOp
    top: ComputeOp
    key: int
    rows: tuple[Axis, ...]
    score: Expr
    scale: Const | None
    along: Mapping[ComputeOp, int]

    @property
    def keys(self) -> Axis:
        """The axis of *raised* that the sums are over."""
        return self.raised.axes[self.key]

    @property
    def columns(self) -> tuple[Axis, ...]:
        """The other axes of *mixed*."""
        return tuple(axis for axis in self.mixed.axes if axis not in self.rows)


def find_weighted_sums(dag: ComputeDAG) -> list[WeightedSum]:
    """Every sum of *dag* that a softmax weights, in order; matched on structure, not on names."""
    found = [_match(dag, op) for op in dag.computes if op not in dag.constant_ops]
    return [weighted for weighted in found if weighted is not None]


def narrowest(weight: Expr) -> DType:
    """The type with the fewest bits that a weight has on its way to the product."""
    types = [e.dtype for e in walk(weight) if isinstance(e, Cast | Load) and e.dtype.is_float]
    return min(types, key=lambda dtype: dtype.bits)


def times_weight(of: WeightedSum, found: Expr, at: Mapping[Var, Expr]) -> Expr:
    """*found*, a sum weighted by exponentials alone, times what the weight multiplies them by.

    *at* has the values of the axes of ``mixed``.
    """

    def times(e: Expr) -> Expr:
        match e:
            case Cast(_, x):
                return times(x)
            case Binary(BinaryOp.DIV | BinaryOp.MUL as kind, a, b):
                first, other = (a, b) if of.read in walk(a) else (b, a)
                return Binary(kind, times(first), substitute(other, at).astype(found.dtype))
            case Select(cond, then, _):
                return select(substitute(cond, at), times(then), 0.0)
        return found

    return times(of.weight)


def _match(dag: ComputeDAG, mixed: ComputeOp) -> WeightedSum | None:
    body = mixed.body
    if not isinstance(body, Reduce) or body.kind is not ReduceKind.SUM or len(body.axes) != 1:
        return None
    product = without_casts(body.source)
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return None
    for factor, value in ((product.a, product.b), (product.b, product.a)):
        found = _weighted(dag, mixed, factor, value)
        if found is not None:
            return found
    return None


def _weighted(dag: ComputeDAG, mixed: ComputeOp, factor: Expr, value: Expr) -> WeightedSum | None:
    """The match in which *factor* of the product in *mixed* is the weight."""
    inlined, (key,) = _inlined(dag, mixed, factor), mixed.reduce_axes
    reads = [e for e in walk(inlined) if isinstance(e, Load) and _is_exponential(e.source)]
    if len(reads) != 1 or not _is_linear(inlined, reads[0], key):
        return None
    raised = reads[0].source
    assert isinstance(raised, ComputeOp)
    at = reads[0].indices
    rows = tuple(index for index in at if isinstance(index, Axis) and index is not key)
    plain = len(set(rows)) == len(rows) == len(at) - 1 and key in at
    if not plain or not set(rows) <= set(mixed.axes):
        return None
    dim = at.index(key)
    parts = exponent(raised)
    readers = dag.readers(raised)
    totals = [op for op in readers if _sums(op, raised, dim)]
    first = [op for op in readers if op not in totals]
    if parts is None or len(totals) != 1 or len(first) != 1 or dag.is_output(raised):
        return None
    score, top, scale = parts
    if not _is_largest(top, raised, dim, score):
        return None
    assert isinstance(top.source, ComputeOp)
    if dag.readers(top.source) != (raised,) or dag.is_output(top.source):
        return None
    keys = {raised: raised.axes[dim], top.source: top.source.reduce_axes[0], mixed: key}
    along = _stages_along(dag, keys, {raised: dim})
    return WeightedSum(
        mixed, inlined, value, reads[0], raised, totals[0], top.source, dim, rows, score, scale,
        along,
    )  # fmt: skip


def _inlined(dag: ComputeDAG, reader: ComputeOp, e: Expr) -> Expr:
    """*e* with the stages inlined that only *reader* reads, up to reductions and exponentials."""

    def inlined(load: Load) -> Expr:
        source = load.source
        if not isinstance(source, ComputeOp) or isinstance(source.body, Reduce):
            return load
        if _is_exponential(source) or dag.readers(source) != (reader,) or dag.is_output(source):
            return load
        at: dict[Var, Expr] = dict(zip(source.axes, load.indices, strict=True))
        return substitute(_inlined(dag, source, source.body), at)

    return map_loads(e, inlined)


def _is_exponential(op: object) -> bool:
    return isinstance(op, ComputeOp) and exponent(op) is not None


def _is_linear(e: Expr, read: Load, key: Axis) -> bool:
    """Whether *e* is *read* times something that does not depend on *key*, or is 0."""
    match e:
        case Load():
            return e is read
        case Cast(_, x):
            return _is_linear(x, read, key)
        case Binary(BinaryOp.DIV, a, b):
            return _is_linear(a, read, key) and key not in walk(b)
        case Binary(BinaryOp.MUL, a, b):
            first, other = (a, b) if read in walk(a) else (b, a)
            return _is_linear(first, read, key) and key not in walk(other)
        case Select(cond, then, Const(0, _)):
            return _is_linear(then, read, key) and key not in walk(cond)
    return False


def _is_largest(top: Load, raised: ComputeOp, dim: int, score: Expr) -> bool:
    """Whether *top*, read by *raised*, is the maximum of *score* over axis number *dim*."""
    op = top.source
    assert isinstance(op, ComputeOp)
    body = op.body
    if not isinstance(body, Reduce) or body.kind is not ReduceKind.MAX or len(body.axes) != 1:
        return False
    key = raised.axes[dim]
    if any(key in walk(index) for index in top.indices):
        return False
    at: dict[Var, Expr] = dict(zip(op.axes, top.indices, strict=True))
    return same_structure(substitute(body.source, {**at, body.axes[0]: key}), score)


def _sums(op: ComputeOp, raised: ComputeOp, dim: int) -> bool:
    """Whether *op* is the sum of *raised* over axis number *dim*, all other axes being rows."""
    body = op.body
    if not isinstance(body, Reduce) or body.kind is not ReduceKind.SUM or len(body.axes) != 1:
        return False
    read = without_casts(body.source)
    if not isinstance(read, Load) or read.source is not raised:
        return False
    rows = [index for d, index in enumerate(read.indices) if d != dim]
    long = {axis for axis in op.axes if axis.extent != 1}
    return read.indices[dim] is body.axes[0] and long <= set(rows) <= set(op.axes)


def _stages_along(
    dag: ComputeDAG, keys: Mapping[ComputeOp, Axis], dim: Mapping[ComputeOp, int]
) -> dict[ComputeOp, int]:
    """The stages that only those of *keys* read, always at the key, with their axis of keys.

    A sum is among them only if its elements are read once for each row: all rows would need the
    sums that they share again.
    """
    found = dict(dim)
    over = dict(keys)
    for op in reversed(dag.computes):
        readers = dag.readers(op)
        if op in over or dag.is_output(op) or op in dag.constant_ops or not readers:
            continue
        if not all(reader in over for reader in readers):
            continue
        places = {
            _key_of(indices, over[reader], _rows_of(reader, over[reader]) if op.reduce_axes else ())
            for reader in readers
            for indices in dag.reads(reader)[op]
        }  # fmt: skip
        only = places.pop() if len(places) == 1 else None
        if only is not None:
            found[op] = only
            over[op] = op.axes[only]
    return found


def _rows_of(reader: ComputeOp, key: Axis) -> list[Axis]:
    """The axes of *reader* that have several elements, except for its keys."""
    return [axis for axis in reader.axes if axis.extent != 1 and axis is not key]


def _key_of(indices: Iterable[Expr], key: Axis, rows: Iterable[Axis]) -> int | None:
    """The dimension that *key* alone indexes, if each of *rows* alone indexes another one."""
    at = list(indices)
    single = {index for index in at if isinstance(index, Axis)}
    inside = [d for d, index in enumerate(at) if key in walk(index)]
    return inside[0] if len(inside) == 1 and {key, *rows} <= single else None
