"""Guards: conditions that skip iterations of a split beyond the loop that it splits.

Sizes alone determine which splits need a guard, and for which vector loops a guard differs between
lanes, so both can be computed for one program or for whole tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansorpy.ir.expr import Axis, Binary, BinaryOp, Cast, Expr, Load, Reduce, ReduceKind
from ansorpy.ir.loops import ForKind
from ansorpy.schedule.bounds.axes import overshoot, ragged
from ansorpy.schedule.stage import FuseRelation, Relation, SplitRelation, Stage
from ansorpy.schedule.tables.size import (
    Size,
    at_most,
    both,
    either,
    fails,
    is_multiple,
    never,
    product,
)

if TYPE_CHECKING:
    from ansorpy.ir.tensor import ComputeOp
    from ansorpy.schedule.bounds.inference import Bounds

__all__ = ["differing_lanes", "guarded_splits", "is_zero_beyond", "peeled"]


def guarded_splits(
    bounds: Bounds, stage: Stage, extents: Mapping[str, Size], hosts: frozenset[str]
) -> dict[SplitRelation, Size]:
    """The splits whose loops may run beyond their parent, and where (0 or 1) a guard is needed.

    No guard is redundant: an iteration beyond one loop may belong to the next iteration of a loop
    outside.
    """
    return {
        r: both(overshoot(r, extents), fails(peeled(r, stage, extents, hosts)))
        for r in stage.relations
        if isinstance(r, SplitRelation) and not _adds_nothing_beyond(bounds, stage, r)
    }


def peeled(
    relation: SplitRelation, stage: Stage, extents: Mapping[str, Size], hosts: frozenset[str]
) -> Size:
    """1 for a split into lanes whose last part is partial and gets its own body, else 0.

    Otherwise (its outer loop was transformed further, another stage is computed inside it, or a
    constant is packed in the order of whole loops), a guard in the lanes skips the rest.
    """
    names = [it.name for it in stage.iters]
    if relation.children[1:] != (stage.lanes,) or not set(relation.children) <= set(names):
        return 0
    outer, lanes = relation.children
    inside = set(names[names.index(outer) :])
    looped = stage.iter(outer).annotation in (ForKind.SERIAL, ForKind.UNROLLED)
    busy = hosts & inside or stage.packed or stage.tensorized
    if busy or not looped or lanes not in inside:
        return 0
    return fails(is_multiple(extents[relation.parent], extents[lanes]))


# Terms that are zero beyond an axis


def _adds_nothing_beyond(bounds: Bounds, stage: Stage, split: SplitRelation) -> bool:
    """Whether a split of a reduce axis adds only products of two zeros beyond the axis.

    Both operands are read along the axis from tiles that hold zeros there.
    """
    op = bounds.op(stage.name)
    axis = next((a for a in op.reduce_axes if a.name == split.parent), None)
    match op.body:
        case Reduce(ReduceKind.SUM, Binary(BinaryOp.MUL, a, b), _) if axis is not None:
            return all(
                _covers_iterations(bounds, stage, split, e)
                and (is_zero_beyond(bounds, e, axis) or _is_fragment(bounds, e, axis))
                for e in (a, b)
            )
        case _:
            return False


def _covers_iterations(bounds: Bounds, stage: Stage, split: SplitRelation, e: Expr) -> bool:
    """Whether *e* loads from a tile that covers all iterations of *split*.

    The tile is computed in the stage's own loops, or an instruction reads it whole.
    """
    e = e.x if isinstance(e, Cast) else e
    attach = bounds.state.stage(e.source.name).attach if isinstance(e, Load) else None
    whole = stage.tensorized is not None and split.tail == "whole"
    return attach is not None and (attach.stage == stage.name or whole)


def is_zero_beyond(bounds: Bounds, e: Expr, axis: Axis) -> bool:
    """Whether *e* loads along *axis* from a tile that has zeros beyond it.

    What is computed from boxes alone is not masked; a copy of a box has zeros where the box has.
    """
    found = _tile_along(bounds, e, axis)
    if found is None:
        return False
    op, own = found
    reads = bounds.inlined_dag.reads[op.name]
    from_boxes = all(bounds.masked(read.tensor.name) for read in reads)
    copies = isinstance(op.body, Load) and is_zero_beyond(bounds, op.body, own)
    return copies or not from_boxes


def _is_fragment(bounds: Bounds, e: Expr, axis: Axis) -> bool:
    """Whether *e* loads along *axis* from a fragment, which is masked where a sum reads it."""
    found = _tile_along(bounds, e, axis)
    return found is not None and bounds.state.stage(found[0].name).fragment is not None


def _tile_along(bounds: Bounds, e: Expr, axis: Axis) -> tuple[ComputeOp, Axis] | None:
    """The operator that makes the tile that *e* loads along *axis*, and its own such axis.

    None if *e* is no load of a tile in a kernel, or one of sums.
    """
    e = e.x if isinstance(e, Cast) else e
    if not isinstance(e, Load) or not bounds.masked(e.source.name):
        return None
    op = bounds.op(e.source.name)
    along = (own for index, own in zip(e.indices, op.axes, strict=True) if index is axis)
    own = next((own for own in along if own.extent == axis.extent), None)
    return None if own is None or op.reduce_axes else (op, own)


# Guards that differ between lanes


@dataclass(frozen=True)
class _Term:
    """A term of a loop's value: *factor* times a loop, or a function of *loops* if not *plain*."""

    loops: frozenset[str]
    plain: Size
    factor: Size


def differing_lanes(
    stage: Stage,
    extents: Mapping[str, Size],
    guards: Mapping[SplitRelation, Size],
    vectors: Mapping[str, Size],
) -> dict[str, Size]:
    """Where (0 or 1) one of the *guards* may differ between the lanes of each of *vectors*.

    *vectors* are the loops that may be vectors, outermost first, and where (0 or 1) they are.  One
    of the loops on which a guard depends may be a vector if the guard is the same for all lanes.
    """
    found: dict[str, Size] = dict.fromkeys(vectors, 0)
    for split, needed in guards.items():
        if never(needed):
            continue
        terms = _terms(stage, split.parent, extents)
        alike = _alike(terms, extents, extents[split.parent], vectors)
        for name, vector in vectors.items():
            if any(name in term.loops for term in terms):
                differs = both(both(needed, vector), fails(alike[name]))
                found[name] = either(found[name], differs)
    return found


def _alike(
    terms: Sequence[_Term], extents: Mapping[str, Size], end: Size, vectors: Mapping[str, Size]
) -> dict[str, Size]:
    """The first of *vectors* for which a guard ``sum(terms) < end`` is the same in all lanes."""
    found: dict[str, Size] = {}
    free: Size = 1
    for name, vector in vectors.items():
        alike: Size = 0
        for term in terms:
            if term.loops == {name}:
                others = [other.factor for other in terms if other is not term]
                whole = product(is_multiple(n, extents[name]) for n in (*others, end))
                alike = both(both(term.plain, at_most(term.factor, 1)), whole)
        found[name] = both(both(free, vector), alike)
        free = both(free, fails(found[name]))
    return found


def _terms(stage: Stage, loop: str, extents: Mapping[str, Size]) -> list[_Term]:
    """The value of a current or replaced loop of *stage*, as a sum over its current loops."""
    made = _maker(stage, loop)
    if made is None:
        return [_Term(frozenset({loop}), 1, 1)]
    if isinstance(made, FuseRelation):
        inside = (term.loops for term in _terms(stage, made.child, extents))
        return [_Term(frozenset().union(*inside), 0, 1)]
    found: list[_Term] = []
    for n, child in enumerate(made.children, start=1):
        step = product(extents[c] for c in made.children[n:])
        parts = [replace(t, factor=t.factor * step) for t in _terms(stage, child, extents)]
        found += parts if n > 1 else [_moved(t, ragged(made, extents)) for t in parts]
    return found


def _moved(term: _Term, shifted: Size) -> _Term:
    """*term* of a tile's start, which is the smaller of two numbers where it may be *shifted*."""
    return _Term(
        term.loops, both(term.plain, fails(shifted)), term.factor + shifted * (1 - term.factor)
    )


def _maker(stage: Stage, loop: str) -> Relation | None:
    """The relation that replaced *loop* by others; None for a current loop."""
    for relation in stage.relations:
        replaced = (relation.parent,) if isinstance(relation, SplitRelation) else relation.parents
        if loop in replaced:
            return relation
    return None
