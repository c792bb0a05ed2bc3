"""Find parallel loops with data races as C defines them, which include stores of equal values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ansorpy.ir.analysis.isl import decide
from ansorpy.ir.loops import For, Program
from ansorpy.ir.prove.agreement import Agreement
from ansorpy.ir.prove.facts import Facts
from ansorpy.ir.prove.prover import MAX_OPERATIONS, SHARED
from ansorpy.ir.prove.races import Races

__all__ = ["conflicting_loops"]


def conflicting_loops(program: Program) -> frozenset[For]:
    """The outermost parallel loops that isl cannot prove free of conflicts.

    Two iterations of such a loop, and of the parallel loops directly in it, conflict if they access
    the same element and at least one of them writes it.
    """
    facts = Facts(program)
    return frozenset(_conflicting(facts, Races(facts, Agreement(facts, None))))


def _conflicting(facts: Facts, races: Races) -> Iterator[For]:
    for region, buffers in facts.regions.items():
        for buffer, uses in buffers.items():
            if region.is_launch or buffer.scope not in SHARED:
                continue
            if not any(use.access.is_write for use in uses):
                continue
            apart = decide(partial(races.is_apart, region, uses), MAX_OPERATIONS)
            if apart is not True:
                yield region.loop
