"""Loop kinds: whether a loop is serial, parallel, vectorised, unrolled or bound to a GPU index.

This is the only place that determines them, for lowering (with numbers), and for tables and limits
(with columns).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ansorpy.ir.extents import Symbolic
from ansorpy.ir.loops import ForKind
from ansorpy.schedule.guards import differing_lanes, guarded_splits, peeled
from ansorpy.schedule.stage import Iter, SplitRelation, Stage
from ansorpy.schedule.tables.size import Size, above, at_most, both, either, fails, never

if TYPE_CHECKING:
    from ansorpy.schedule.bounds.inference import Bounds

__all__ = ["MAX_UNROLL_DEPTH", "LoopKind", "loop_kinds", "marked_parallel", "marked_vector"]

MAX_UNROLL_DEPTH = 8
"""Maximum number of loops that automatic unrolling may expand (TVM's auto_max_depth)."""


@dataclass(frozen=True)
class LoopKind:
    """Conditions for the kinds of a loop, at most one of which holds; serial where none holds."""

    parallel: Size = 0
    vector: Size = 0
    unroll: Size = 0
    bound: Size = 0
    index: ForKind = ForKind.SERIAL
    """The GPU index to which the loop is bound where *bound* holds."""

    @property
    def kind(self) -> ForKind:
        """The kind of the loop in a program, where sizes are numbers."""
        kinds = {
            ForKind.PARALLEL: self.parallel, ForKind.VECTORIZED: self.vector,
            ForKind.UNROLLED: self.unroll, self.index: self.bound,
        }  # fmt: skip
        for size in kinds.values():
            assert isinstance(size, int), "a column of sizes has no single kind"
        return next((kind for kind, size in kinds.items() if size), ForKind.SERIAL)


@lru_cache(maxsize=64)
def loop_kinds(bounds: Bounds, name: str) -> Mapping[str, LoopKind]:
    """The kind of each current loop of stage *name*.

    - Parallel loops form one collapsed nest: a loop nested in another stage's parallel loop, or
      separated from the first parallel loop of its own stage, runs serially.
    - Lanes share everything inside them: a vector loop around another stage or a parallel loop is
      serial, and so is one with a guard that may differ between lanes, unless it is a condition on
      a size: then some lanes are masked, as no tile divides all sizes.
    - Only loops whose extents are numbers are unrolled.
    - Automatic unrolling goes from the inside out.  It stops at the first loop that would exceed
      the pragma's number of statements or that has another stage computed inside.
    """
    stage = bounds.state.stage(name)
    hosts = bounds.state.host_iters(stage)
    kinds = _marked(bounds, stage, hosts, nested=_in_parallel(bounds, stage))
    kinds = _unrolled(bounds, stage, hosts, kinds)
    kinds = _without_unknown(bounds, stage, hosts, kinds)
    return _without_guarded_lanes(bounds, stage, hosts, kinds)


def _without_unknown(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], kinds: dict[str, LoopKind]
) -> dict[str, LoopKind]:
    """*kinds*, except that loops whose extents depend on dimensions are not unrolled.

    The number of parts that fill all lanes may depend on them though that of all parts does not.
    """
    extents = bounds.extents(stage.name)
    unknown = {name for name in kinds if isinstance(extents[name], Symbolic)}
    for split in stage.relations:
        if isinstance(split, SplitRelation) and isinstance(extents[split.parent], Symbolic):
            outer, lanes = split.children[0], split.children[-1]
            whole = extents[split.parent] // extents[lanes]
            if isinstance(whole, Symbolic) and peeled(split, stage, extents, hosts):
                unknown.add(outer)
    return {
        name: replace(kind, unroll=0) if name in unknown else kind for name, kind in kinds.items()
    }


def marked_parallel(stage: Stage, name: str, count: Size) -> Size:
    """1 if a loop is among the first *count* loops of *stage* that may run in parallel, else 0."""
    if stage.parallel is None or name not in stage.parallel.iters:
        return 0
    return above(count, stage.parallel.iters.index(name))


def marked_vector(stage: Stage, name: str, count: Size) -> Size:
    """1 if a loop is among the last *count* loops of *stage* that may be vectors, else 0."""
    if stage.vectorize is None or name not in stage.vectorize.iters:
        return 0
    loops = stage.vectorize.iters
    return above(count, len(loops) - 1 - loops.index(name))


def _marked(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], *, nested: Size
) -> dict[str, LoopKind]:
    """The kinds of *stage*'s loops by annotations and marks; *nested*: inside a parallel loop."""
    kinds = _parallel(bounds, stage, hosts, nested)
    return _vectors(bounds, stage, hosts, kinds)


def _parallel(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], closed: Size
) -> dict[str, LoopKind]:
    """Parallel loops that form one nest, unless it is *closed*, and other loops as annotated."""
    count = bounds.number(stage.parallel.count if stage.parallel else (0,))
    begun: Size = 0
    kinds: dict[str, LoopKind] = {}
    for it in stage.iters:
        marked = marked_parallel(stage, it.name, count)
        annotated = _annotated(it, fails(marked))
        together = both(marked, fails(closed))
        kinds[it.name] = annotated if never(together) else replace(annotated, parallel=together)
        begun = either(begun, marked)
        closed = either(closed, begun if it.name in hosts else both(begun, fails(marked)))
    return kinds


def _in_parallel(bounds: Bounds, stage: Stage) -> Size:
    """1 where *stage* is computed inside a parallel loop, else 0."""
    if stage.attach is None:
        return 0
    host = bounds.state.stage(stage.attach.stage)
    extents, found = bounds.extents(host.name), _in_parallel(bounds, host)
    kinds = _marked(bounds, host, bounds.state.host_iters(host), nested=found)
    for it in host.iters[: host.index(stage.attach.iter) + 1]:
        found = either(found, both(kinds[it.name].parallel, above(extents[it.name], 1)))
    return found


def _annotated(it: Iter, holds: Size) -> LoopKind:
    """The kind of a loop that runs as annotated where a condition *holds*."""
    if it.annotation is ForKind.SERIAL:
        return LoopKind()
    if it.annotation is ForKind.UNROLLED:
        return LoopKind(unroll=holds)
    return LoopKind(bound=holds, index=it.annotation)


def _vectors(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], kinds: dict[str, LoopKind]
) -> dict[str, LoopKind]:
    count = bounds.number(stage.vectorize.count if stage.vectorize else (0,))
    outside: Size = 1
    found: dict[str, LoopKind] = {}
    for it in reversed(stage.iters):
        marked: Size = marked_vector(stage, it.name, count) if it.name != stage.lanes else 1
        found[it.name] = made = _overridden(kinds[it.name], marked)
        outside = 0 if it.name in hosts else both(outside, fails(made.parallel))
        in_lanes = both(marked, outside)
        found[it.name] = made if never(in_lanes) else replace(made, vector=in_lanes)
    return {it.name: found[it.name] for it in stage.iters}


def _overridden(kind: LoopKind, marked: Size) -> LoopKind:
    """*kind*, except where a loop is *marked* to run differently."""
    if never(marked):
        return kind
    rest = fails(marked)
    return replace(
        kind, parallel=both(kind.parallel, rest), unroll=both(kind.unroll, rest),
        bound=both(kind.bound, rest),
    )  # fmt: skip


def _unrolled(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], kinds: dict[str, LoopKind]
) -> dict[str, LoopKind]:
    extents, limit = bounds.extents(stage.name), bounds.number(stage.max_unroll)
    going: Size = 1
    steps: Size = 1
    depth: Size = 0
    found = dict(kinds)
    for it in reversed(stage.iters):
        kind = kinds[it.name]
        if it.name in hosts or never(going):
            break
        counts = both(fails(kind.vector), above(extents[it.name], 1))
        steps = steps * (1 + counts * (extents[it.name] - 1))
        depth = depth + counts
        serial = fails(either(either(kind.parallel, kind.unroll), kind.bound))
        within = both(at_most(steps - limit, 0), at_most(depth, MAX_UNROLL_DEPTH))
        unrolls = both(counts, either(kind.unroll, both(serial, within)))
        found[it.name] = replace(kind, unroll=either(kind.unroll, both(going, unrolls)))
        going = both(going, either(fails(counts), unrolls))
    return found


def _without_guarded_lanes(
    bounds: Bounds, stage: Stage, hosts: frozenset[str], kinds: dict[str, LoopKind]
) -> dict[str, LoopKind]:
    vectors = {name: kind.vector for name, kind in kinds.items() if not never(kind.vector)}
    if not vectors:
        return kinds
    extents = bounds.extents(stage.name)
    guards = {
        split: needed for split, needed in guarded_splits(bounds, stage, extents, hosts).items()
        if not isinstance(extents[split.parent], Symbolic)
    }  # fmt: skip
    differs = differing_lanes(stage, extents, guards, vectors)
    alike = {name: both(vectors[name], fails(differs[name])) for name in vectors}
    return kinds | {name: replace(kinds[name], vector=alike[name]) for name in vectors}
