"""Prove that all threads of a block reach its barriers, and all lanes of a team act together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.fragments import WARP, fragment_lanes, in_lane
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import THREAD_INDICES, Barrier, For, Instruction, Shuffle
from ansorpy.ir.prove.findings import Claim, Finding
from ansorpy.ir.prove.instances import thread_number
from ansorpy.ir.prove.relations import Points
from ansorpy.ir.prove.sites import Access, Site
from ansorpy.ir.sizes import fixed

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["check_held", "check_together", "needs_others"]


def needs_others(site: Site) -> bool:
    """True for a statement that several threads must reach."""
    return isinstance(site.stmt, Barrier | Shuffle | Instruction)


def check_together(site: Site) -> Finding:
    """Whether all threads reach a barrier, or all lanes of a team an operation of the team."""
    match site.stmt:
        case Barrier():
            return _at_barrier(site)
        case Shuffle(_, _, _, distance):
            return _in_teams(site, 2 * distance, ())
        case Instruction(name, operands):
            indices = [index for _, at in operands for index in at]
            return _in_teams(site, intrinsic(name).team, indices)
    raise TypeError(f"{type(site.stmt).__name__} needs no other threads")


def check_held(site: Site, access: Access) -> Finding:
    """Whether the lane that accesses an element in a warp's registers is the one that holds it."""
    fragment = access.buffer.fragment
    assert fragment is not None
    lanes = fragment_lanes(fragment)
    apart = in_lane(fragment, access.indices).not_equal(thread_number(site) % lanes)
    conditions = (*site.conditions, *access.conditions, apart)
    held = Points(site, access, (*conditions, *access.indices)).where(conditions)
    if held.may.is_empty():
        return Finding.proved(Claim.HELD)
    name = access.buffer.name
    message = f'a lane accesses an element of {name} that another lane holds, in "{site.line}"'
    return Finding.fails(Claim.HELD, message, certain=held.exact)


def _at_barrier(site: Site) -> Finding:
    """Whether every thread of a block reaches a barrier if one does."""
    missing = _partial(site)
    if missing is not None:
        return missing
    if not site.conditions:
        return Finding.proved(Claim.TOGETHER)
    around, number = _around(site, ()), thread_number(site)
    points = Points(site, None, (*around, number, *site.conditions))
    reached = points.relation(around, (number,), site.conditions)
    all_threads = points.relation(around, (number,), ())
    wanted = all_threads.map.intersect_domain(reached.map.domain())
    return _finding(wanted.is_subset(reached.map), reached.exact, site, "of a block")


def _in_teams(site: Site, size: int, indices: Sequence[Expr]) -> Finding:
    """Whether all threads of each team of *size* reach *site*, with the same *indices*."""
    missing = _partial(site)
    if missing is not None:
        return missing
    assert site.region is not None
    around, number = _around(site, indices), thread_number(site)
    points = Points(site, None, (*around, number, *site.conditions, *indices))
    reached = points.relation(around, (number,), site.conditions)
    for whole in (_alike(size), _alike(WARP, site.region.threads)):
        if not reached.map.apply_range(whole).is_subset(reached.map):
            return _finding(False, reached.exact, site, "of a warp")
    wanted = points.relation((*around, number // size), indices, site.conditions)
    if wanted.map.is_single_valued():
        return Finding.proved(Claim.TOGETHER)
    message = f'the lanes of a team have different operands in "{site.line}"'
    return Finding.fails(Claim.TOGETHER, message, certain=wanted.exact)


def _partial(site: Site) -> Finding | None:
    """The failed claim if a loop over threads around *site* leaves some threads out; else None."""
    region = site.region
    if region is None:
        return Finding.undecided(Claim.TOGETHER, f'"{site.line}" is outside of a kernel')
    for node in site.nodes:
        if not isinstance(node, For) or node.kind not in THREAD_INDICES:
            continue
        available = fixed(region.extents[node.kind])
        if fixed(node.extent) < available and not _is_whole(fixed(node.extent), available, site):
            return Finding.refuted(
                Claim.TOGETHER,
                f"only {node.extent} of {available} threads along {node.kind.value} reach "
                f'"{site.line}"',
            )
    return None


def _is_whole(extent: int, available: int, site: Site) -> bool:
    """True if a loop leaves out only whole warps, and *site* needs no other warps."""
    return not isinstance(site.stmt, Barrier) and extent % WARP == 0 == available % WARP


def _around(site: Site, indices: Sequence[Expr]) -> list[Var]:
    """The variables, except thread indices, on which *indices* and conditions depend."""
    threads = {site.index[kind] for kind in THREAD_INDICES if kind in site.index}
    used = {v for e in (*indices, *site.conditions) for v in site.free(e)}
    return [v for v in site.extents if v in used and v not in threads]


def _alike(size: int, threads: int | None = None) -> isl.Map:
    """From a thread's number to the numbers in its team of *size*, which are below *threads*."""
    import islpy

    first = f"{size} * floor(n / {size})"
    most = "" if threads is None else f" and m < {threads}"
    return islpy.Map(f"{{ [n] -> [m] : {first} <= m < {first} + {size}{most} }}")


def _finding(holds: bool, exact: bool, site: Site, who: str) -> Finding:
    if holds and exact:
        return Finding.proved(Claim.TOGETHER)
    message = f'only some threads {who} reach "{site.line}"'
    return Finding.fails(Claim.TOGETHER, message, certain=exact)
