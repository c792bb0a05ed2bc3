"""The algorithm interface, which rewrites a compute DAG, and the definitions of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Precision
from ansorpy.target import Target

__all__ = ["DIRECT", "Algorithm", "Definition", "definitions", "definitions_for_all"]

DIRECT = "direct"
"""The name of the task's own definition."""

EFFORT = 2.0
"""A definition that takes this many times the operations of an exact one is ruled out."""


@dataclass(frozen=True, eq=False)
class Definition:
    """One way to compute a task.

    Args:
        name: Its name in messages: ``"direct"``, ``"winograd(4x4)"``.
        dag: The DAG, with the same arguments and output names as the task's own.
        error: Largest expected error beyond the task's own rounding, as a fraction of the largest
            output; 0 for a pure reordering.  It holds for finite data: algorithms add or leave out
            products with zeros, which are NaN for an infinity.
    """

    name: str
    dag: ComputeDAG
    error: float = 0.0


class Algorithm(ABC):
    """A family of equivalent definitions, matched on access relations; a frozen dataclass."""

    asked_by: ClassVar[Precision | None] = None
    """The only precision that enables the algorithm; None if every precision does."""

    @abstractmethod
    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """Other definitions equivalent to *dag*; none if the algorithm does not apply."""

    def rewrite_for_all(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """Definitions equivalent to *dag*, which has dimensions, at all of their sizes.

        They include all that :meth:`rewrite` may offer at one of the sizes and that hold for all;
        none unless the algorithm knows.
        """
        return ()


def definitions(
    dag: ComputeDAG,
    algorithms: Sequence[Algorithm],
    target: Target,
    precision: Precision,
) -> tuple[Definition, ...]:
    """The given definition first, then the others.

    With *precision* ``"strict"``, only definitions without a stated error are included.  A
    definition, even the given one, that takes ``EFFORT`` times the operations of an exact one is
    left out: no schedule makes up for that.
    """
    found = [Definition(DIRECT, dag)]
    for algorithm in _allowed(algorithms, precision):
        found += _stated(algorithm.rewrite(dag, target), precision)
    least = min(flops(d.dag) for d in found if not d.error)
    return tuple(d for d in found if flops(d.dag) < EFFORT * max(least, 1.0))


def definitions_for_all(
    dag: ComputeDAG,
    algorithms: Sequence[Algorithm],
    target: Target,
    precision: Precision,
) -> Iterator[Definition]:
    """Yield the given definition, which has dimensions, then others for all of their sizes."""
    yield Definition(DIRECT, dag)
    for algorithm in _allowed(algorithms, precision):
        yield from _stated(algorithm.rewrite_for_all(dag, target), precision)


def _allowed(algorithms: Sequence[Algorithm], precision: Precision) -> list[Algorithm]:
    return [a for a in algorithms if a.asked_by in (None, precision)]


def _stated(found: Iterable[Definition], precision: Precision) -> Iterator[Definition]:
    """Those *found* whose stated error *precision* permits."""
    return (d for d in found if not d.error or precision != "strict")
