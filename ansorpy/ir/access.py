"""How each operator reads its producers: index functions and their properties.

Plain affine indices are read off the expression.  For indices that mix axes, or contain quotients,
remainders or minima, isl decides whether they name an element twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ansorpy.ir.affine import index_terms
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Expr, walk
from ansorpy.ir.isl import Domain, decide
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Access", "accesses"]

Terms = tuple[Mapping[Axis, int], int]


@dataclass(frozen=True, eq=False)
class Access:
    """One load of *producer* in the body of the operator that reads it.

    Args:
        terms: Per dimension (coefficient of each axis, offset), None where not affine.
        injective: Different values of the axes that occur never read the same element.
        broadcast: Some space axis of extent above 1 does not occur, so elements are read again.
    """

    producer: Tensor
    indices: tuple[Expr, ...]
    terms: tuple[Terms | None, ...]
    injective: bool
    broadcast: bool


_CACHE: WeakKeyDictionary[ComputeDAG, Mapping[ComputeOp, tuple[Access, ...]]] = WeakKeyDictionary()


def accesses(dag: ComputeDAG) -> Mapping[ComputeOp, tuple[Access, ...]]:
    """The accesses of every compute of *dag*, in order of appearance; cached per DAG."""
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


def _access(op: ComputeOp, producer: Tensor, indices: tuple[Expr, ...]) -> Access:
    axes = (*op.axes, *op.reduce_axes)
    terms = tuple(index_terms(index, axes) for index in indices)
    used = [a for a in axes if any(a in set(walk(index)) for index in indices)]
    return Access(
        producer=producer,
        indices=indices,
        terms=terms,
        injective=_injective(producer, terms, indices, used),
        broadcast=any(a.extent > 1 and a.kind is AxisKind.SPACE and a not in used for a in axes),
    )


def _injective(
    producer: Tensor, terms: tuple[Terms | None, ...], indices: tuple[Expr, ...], used: list[Axis]
) -> bool:
    separate = [t[0] for t in terms if t is not None]
    if len(separate) == len(terms) and all(len(t) <= 1 for t in separate):
        return True
    relation = Domain({axis: axis.extent for axis in used}).access(indices, producer.shape)
    return relation.exact and decide(relation.map.is_injective) is True
