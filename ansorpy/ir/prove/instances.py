"""Map threads and teams of a kernel to their instances of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ansorpy.ir.expr import Expr, Var, as_expr
from ansorpy.ir.fragments import fragment_lanes
from ansorpy.ir.loops import BLOCK_INDICES, LAUNCH_INDICES, THREAD_INDICES
from ansorpy.ir.prove.facts import Use
from ansorpy.ir.prove.sites import Site

__all__ = ["Where", "own_instance", "team_number", "thread_number", "variables_of"]

Where = Callable[[Site], Sequence[Expr]]
"""The coordinates of a statement; all statements have the same number of them."""


def own_instance(uses: Sequence[Use], depending: Sequence[Use]) -> Where:
    """The block, and the thread or team, that owns the buffer instance that *uses* access.

    Indices on which none of *depending* depends are left out.
    """
    needed = variables_of(depending)
    buffer, region = uses[0].access.buffer, uses[0].site.region
    assert region is not None
    kinds = [
        kind
        for kind in region.bound(LAUNCH_INDICES)
        if any(use.site.index.get(kind) in needed for use in uses)
        or len({kind in use.site.index for use in uses}) > 1
    ]
    if buffer.fragment is None:
        return lambda site: site.hardware(kinds)
    lanes = fragment_lanes(buffer.fragment)
    blocks = [kind for kind in kinds if kind in BLOCK_INDICES]
    return lambda site: (*site.hardware(blocks), team_number(site, lanes))


def variables_of(uses: Sequence[Use]) -> set[Var]:
    """The loop variables that determine what *uses* access."""
    return {
        v
        for site, access in uses
        for e in (*access.indices, *access.conditions, *site.conditions)
        for v in site.free(e)
    }


def thread_number(site: Site) -> Expr:
    """The number in its block of the thread that runs *site*."""
    total: Expr = as_expr(0)
    for index, step in _steps(site):
        total = total + index * step
    return total


def team_number(site: Site, lanes: int) -> Expr:
    """The number in its block of the team of *lanes* threads that runs *site*."""
    total, rest, most = as_expr(0), as_expr(0), 0
    assert site.region is not None
    for (index, step), kind in zip(_steps(site), THREAD_INDICES, strict=True):
        if step % lanes == 0:
            total = total + index * (step // lanes)
        else:
            rest = rest + index * step
            most += (site.region.extents.get(kind, 1) - 1) * step
    return total if most < lanes else total + rest // lanes


def _steps(site: Site) -> Iterator[tuple[Expr, int]]:
    """Each thread index, and what one step of it adds to the number of a thread in its block."""
    assert site.region is not None
    step = 1
    for kind in THREAD_INDICES:
        yield site.hardware([kind])[0], step
        step *= site.region.extents.get(kind, 1)
