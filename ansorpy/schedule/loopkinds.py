"""How each loop of a bound stage runs: serial, parallel, vectorised, unrolled or bound."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.ir.loops import ForKind
from ansorpy.schedule.axes import number
from ansorpy.schedule.stage import Stage

__all__ = ["MAX_UNROLL_DEPTH", "loop_kinds"]

MAX_UNROLL_DEPTH = 8
"""Loops one statement's automatic unrolling may expand (TVM's auto_max_depth)."""


def loop_kinds(
    stage: Stage, extents: Mapping[str, int], hosts: set[str], *, nested: bool
) -> dict[str, ForKind]:
    """The kind of each current loop of *stage*; *hosts* are those with a stage computed inside.

    Parallel loops form one collapsed nest: a loop *nested* in another stage's parallel loop, or
    separated from the first parallel one of its own stage, runs serially.

    Automatic unrolling goes from the inside out and stops at the first loop that would exceed
    the pragma's number of statements or that has another stage computed inside.
    """
    kinds = {it.name: it.annotation for it in stage.iters}
    if stage.parallel is not None:
        for name in stage.parallel.iters[: number(stage.parallel.count)]:
            kinds[name] = ForKind.PARALLEL
    _keep_one_parallel_nest(stage, hosts, kinds, nested=nested)
    if stage.vectorize is not None:
        count = number(stage.vectorize.count)
        for name in stage.vectorize.iters[len(stage.vectorize.iters) - count :]:
            kinds[name] = ForKind.VECTORIZED
    if stage.lanes in kinds:
        kinds[stage.lanes] = ForKind.VECTORIZED
    _keep_vectors_inside(stage, hosts, kinds)
    _auto_unroll(stage, extents, hosts, kinds)
    return kinds


def _keep_one_parallel_nest(
    stage: Stage, hosts: set[str], kinds: dict[str, ForKind], *, nested: bool
) -> None:
    closed = nested
    begun = False
    for it in stage.iters:
        parallel = kinds[it.name] is ForKind.PARALLEL
        if parallel and closed:
            kinds[it.name] = ForKind.SERIAL
        begun = begun or parallel
        closed = closed or (begun and (not parallel or it.name in hosts))


def _keep_vectors_inside(stage: Stage, hosts: set[str], kinds: dict[str, ForKind]) -> None:
    """Make vector loops around another stage or a parallel loop serial: lanes share those."""
    outside = True
    for it in reversed(stage.iters):
        outside = outside and it.name not in hosts and kinds[it.name] is not ForKind.PARALLEL
        if not outside and kinds[it.name] is ForKind.VECTORIZED:
            kinds[it.name] = ForKind.SERIAL


def _auto_unroll(
    stage: Stage, extents: Mapping[str, int], hosts: set[str], kinds: dict[str, ForKind]
) -> None:
    limit, steps, depth = number(stage.max_unroll), 1, 0
    for it in reversed(stage.iters):
        if kinds[it.name] is ForKind.VECTORIZED or extents[it.name] == 1:
            if it.name in hosts:
                return
            continue
        steps *= extents[it.name]
        depth += 1
        explicit = kinds[it.name] is ForKind.UNROLLED
        fits = kinds[it.name] is ForKind.SERIAL and steps <= limit and depth <= MAX_UNROLL_DEPTH
        if it.name in hosts or not (explicit or fits):
            return
        kinds[it.name] = ForKind.UNROLLED
