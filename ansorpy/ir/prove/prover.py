"""Run all proofs about a loop program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ansorpy.ir.analysis.isl import decide
from ansorpy.ir.loops import Instruction, Program, Role, Scope
from ansorpy.ir.prove.agreement import Agreement
from ansorpy.ir.prove.asynchronous import Asynchronous
from ansorpy.ir.prove.bounds import Bounds
from ansorpy.ir.prove.defined import Defined
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.findings import Claim, Finding, Proof
from ansorpy.ir.prove.races import Races
from ansorpy.ir.prove.teams import check_held, check_together, needs_others

__all__ = ["MAX_OPERATIONS", "prove"]

MAX_OPERATIONS = 1_000_000
"""Steps that isl may take for one finding, about a second; no program needed a fifth of them."""

SHARED = (Scope.GLOBAL, Scope.WORKSPACE, Scope.SHARED)

Question = tuple[Claim, str, Callable[[], Finding]]


def prove(program: Program, packing: Program | None = None) -> Proof:
    """Check all memory accesses of *program* with isl; *packing* computes its packed constants.

    Cost: some milliseconds for most programs; but isl has no time limit, so call this in a process
    that can be stopped.
    """
    facts = Facts(program)
    others = None if packing is None else Facts(packing)
    found = []
    for claim, what, question in _questions(facts, others):
        answer = decide(question, MAX_OPERATIONS)
        if answer is None:
            answer = Finding.undecided(claim, f"isl reached its limit of operations for {what}")
        found.append(answer)
    return Proof.of(found)


def _questions(facts: Facts, packing: Facts | None) -> Iterator[Question]:
    yield from _about_sites(facts)
    races, defined = Races(facts, Agreement(facts, packing)), Defined(facts)
    for region, buffers in facts.regions.items():
        for buffer, uses in buffers.items():
            if buffer.scope in SHARED and any(use.access.is_write for use in uses):
                yield Claim.APART, buffer.name, partial(races.check, region, buffer, uses)
    for param in facts.program.params:
        if param.role is Role.OUTPUT:
            yield Claim.COMPLETE, param.buffer.name, partial(defined.output, param.buffer)


def _about_sites(facts: Facts) -> Iterator[Question]:
    bounds, defined, others = Bounds(), Defined(facts), Asynchronous(facts)
    given = {p.buffer for p in facts.program.params if p.role is not Role.OUTPUT}
    for site in facts.sites:
        if needs_others(site):
            yield Claim.TOGETHER, site.line, partial(check_together, site)
        for access in site.accesses:
            use = Use(site, access)
            yield Claim.BOUNDS, site.line, partial(bounds.check, site, access)
            if not access.is_write and access.buffer not in given:
                yield Claim.DEFINED, site.line, partial(defined.read, use)
            if access.buffer.fragment is not None and not isinstance(site.stmt, Instruction):
                yield Claim.HELD, site.line, partial(check_held, site, access)
            if use.is_copy or use.is_product:
                yield Claim.APART, site.line, partial(others.check, use)
