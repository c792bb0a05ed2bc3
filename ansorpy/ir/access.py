"""How each operator reads its producers: index functions, their properties, and touched boxes.

The extent of the box that an iteration box touches is an expression over the sizes of the
iteration box (an axis stands for its size), valid for every position of the box.  Plain affine
indices are read off the expression; quotients, remainders and minima are put to isl, which sees
the definition only, never tile sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ansorpy.ir.affine import index_terms
from ansorpy.ir.builders import minimum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Binary, BinaryOp, Const, Expr, const, walk
from ansorpy.ir.interval import bounds
from ansorpy.ir.isl import is_injective, touched_extent
from ansorpy.ir.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Access", "accesses", "box_extent"]

Terms = tuple[Mapping[Axis, int], int]


@dataclass(frozen=True, eq=False)
class Access:
    """One load of *producer* in the body of *reader*.

    Args:
        terms: Per dimension (coefficient of each axis, offset), None where not affine.
        extents: Per dimension the elements touched, over the sizes of the iteration box.
        exact: The extents are attained by some box; else they are bounds from above.
        injective: Different values of the axes that occur never touch one element.
        identity: Element ``[i, j, ...]`` is read at ``[i, j, ...]``, and shapes agree.
        strided: Some axis moves by more than one element of a dimension.
        broadcast: Some space axis of extent above 1 does not occur: elements are read again.
    """

    reader: ComputeOp
    producer: Tensor
    indices: tuple[Expr, ...]
    terms: tuple[Terms | None, ...]
    extents: tuple[Expr, ...]
    exact: bool
    injective: bool
    identity: bool
    strided: bool
    broadcast: bool


_CACHE: WeakKeyDictionary[ComputeDAG, Mapping[ComputeOp, tuple[Access, ...]]] = WeakKeyDictionary()


def accesses(dag: ComputeDAG) -> Mapping[ComputeOp, tuple[Access, ...]]:
    """The accesses of every compute of *dag*, in order of appearance; computed once a DAG."""
    found = _CACHE.get(dag)
    if found is None:
        found = {
            op: tuple(
                _access(op, producer, indices)
                for producer, tuples in dag.reads(op).items()
                for indices in tuples
            )
            for op in dag.computes
        }
        _CACHE[dag] = found
    return found


def box_extent(
    access: Access,
    dim: int,
    sizes: Mapping[Axis, Any],
    smaller: Callable[[Any, Any], Any] = min,
) -> Any:
    """Elements of dimension *dim* that an iteration box of *sizes* touches, at most.

    *sizes* are ints, or columns with ``+ - * //`` and the function *smaller* on two of them.
    """
    return _evaluate(access.extents[dim], sizes, smaller)


def _evaluate(e: Expr, sizes: Mapping[Axis, Any], smaller: Callable[[Any, Any], Any]) -> Any:
    match e:
        case Axis():
            return sizes[e]
        case Const(value, _):
            return int(value)
        case Binary(op, a, b):
            return _APPLY[op](_evaluate(a, sizes, smaller), _evaluate(b, sizes, smaller), smaller)
        case _:
            raise TypeError(f"{type(e).__name__} in an extent")


_APPLY: Mapping[BinaryOp, Callable[[Any, Any, Callable[[Any, Any], Any]], Any]] = {
    BinaryOp.ADD: lambda a, b, smaller: a + b,
    BinaryOp.SUB: lambda a, b, smaller: a - b,
    BinaryOp.MUL: lambda a, b, smaller: a * b,
    BinaryOp.FLOORDIV: lambda a, b, smaller: a // b,
    BinaryOp.MIN: lambda a, b, smaller: smaller(a, b),
}


def _access(op: ComputeOp, producer: Tensor, indices: tuple[Expr, ...]) -> Access:
    axes = (*op.axes, *op.reduce_axes)
    terms = tuple(index_terms(index, axes) for index in indices)
    found = [
        _extent(index, t, axes, size)
        for index, t, size in zip(indices, terms, producer.shape, strict=True)
    ]
    used = [a for a in axes if any(a in set(walk(index)) for index in indices)]
    moves = [abs(c) for t in terms if t is not None for c in t[0].values()]
    return Access(
        reader=op,
        producer=producer,
        indices=indices,
        terms=terms,
        extents=tuple(extent for extent, _ in found),
        exact=all(exact for _, exact in found),
        injective=_injective(terms, indices, used),
        identity=producer.shape == op.shape and indices == op.axes,
        strided=any(c > 1 for c in moves),
        broadcast=any(a.extent > 1 and a.kind is AxisKind.SPACE and a not in used for a in axes),
    )


def _extent(
    index: Expr, terms: Terms | None, axes: tuple[Axis, ...], size: int
) -> tuple[Expr, bool]:
    """(extent, exact): how many elements of a dimension of *size* elements *index* spans."""
    if terms is not None:
        total: Expr = const(1)
        for axis, c in terms[0].items():
            total = total + (axis - 1) * abs(c)
        return _limited(total, axes, size), True
    asked = touched_extent(index, axes)
    if asked is not None:
        return _limited(asked[0], axes, size), asked[1]
    low, high = bounds(index, {})
    return _limited(_structural(index), axes, min(size, high - low + 1)), False


def _limited(extent: Expr, axes: tuple[Axis, ...], size: int) -> Expr:
    """No more than the dimension has: a guard keeps what reaches out of it from being read."""
    return simplify(minimum(extent, size), {axis: (1, axis.extent) for axis in axes})


def _structural(e: Expr) -> Expr:
    """Bound of the extent from the operands' extents; at a jump, as large as it may become."""
    match e:
        case Axis():
            return e
        case Const():
            return const(1)
        case Binary(BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MIN | BinaryOp.MAX, a, b):
            # Both are 1-Lipschitz in each operand.
            return _structural(a) + _structural(b) - 1
        case Binary(BinaryOp.MUL, a, Const(c, _)):
            return (_structural(a) - 1) * abs(int(c)) + 1
        case Binary(BinaryOp.FLOORDIV, a, Const(c, _)) if c > 0:
            return (_structural(a) + (int(c) - 2)) // int(c) + 1
        case Binary(BinaryOp.FLOORMOD, a, Const(c, _)) if c > 0:
            # One element stays one; more may wrap around and touch all c.
            return minimum((_structural(a) - 1) * int(c) + 1, int(c))
        case _:
            low, high = bounds(e, {})
            return const(high - low + 1)


def _injective(
    terms: tuple[Terms | None, ...], indices: tuple[Expr, ...], used: list[Axis]
) -> bool:
    separate = [t[0] for t in terms if t is not None]
    if len(separate) == len(terms) and all(len(t) <= 1 for t in separate):
        return True
    return is_injective(indices, used) is True
