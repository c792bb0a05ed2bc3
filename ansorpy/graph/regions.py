"""Regions of a graph that run several times, or only sometimes: loops and branches.

A region has bodies, which are graphs, and several results.  Each result that is needed is a node of
the graph around it (:class:`Result`); all nodes of one region have the same operands.  Whatever a
body reads from outside is an operand, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node
from ansorpy.graph.ops import Op, Pattern, TensorType
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp

__all__ = ["BranchRegion", "LoopRegion", "Region", "Result", "with_bodies"]


class Region(ABC):
    """Bodies that are run under some control; compared by identity."""

    label: ClassVar[str]

    @property
    @abstractmethod
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs that it runs."""

    @abstractmethod
    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        """The same region with other bodies, which compute the same."""

    @abstractmethod
    def types(self) -> tuple[TensorType, ...]:
        """The types of its results."""

    @abstractmethod
    def run(self, operands: Sequence[Array]) -> list[Array]:
        """Its results for constant *operands*, by the definitions of the operators in it."""

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions that it depends on."""
        return tuple(dict.fromkeys(dim for body in self.bodies for dim in _dims_in(body)))


@dataclass(frozen=True, eq=False)
class LoopRegion(Region):
    """Runs ``body`` for ``i = 0, 1, ..``, as long as ``i < trips`` and its condition holds.

    Its operands are: a number of iterations (int64), if ``has_limit``; whether to begin (bool), if
    ``has_start``; the values of ``carried`` variables before the first iteration; as many ``read``
    tensors, of which iteration ``i`` reads the ``i``-th row; and what else the body reads.

    The body's inputs are ``i``, the carried values, the rows, and the others.  Its outputs are
    whether to go on, if ``has_condition``; the carried values for the next iteration; and rows, of
    which results are made.  Sizes of dimensions that each iteration counts follow; no result
    depends on them.

    The results are the carried values after the last iteration, the tensors of all ``written``
    rows, of which there are ``length``, and if it ``counts``, the number of iterations (int64).
    ``read`` and ``written`` say for each whether iteration ``i`` has the ``i``-th last row.
    ``is_bounded`` says that a run fails which would go on after ``trips`` iterations.
    """

    body: Graph
    trips: AnyExtent | None
    carried: int
    has_limit: bool = False
    has_start: bool = False
    has_condition: bool = False
    read: tuple[bool, ...] = ()
    written: tuple[bool, ...] = ()
    length: AnyExtent = 0
    counts: bool = False
    is_bounded: bool = False
    label: ClassVar[str] = "loop"

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    def with_bodies(self, bodies: Sequence[Graph]) -> LoopRegion:
        return replace(self, body=bodies[0])

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        own = [e for e in (self.trips, self.length) if e is not None]
        return tuple(dict.fromkeys((*dims_of(own), *_dims_in(self.body))))

    def types(self) -> tuple[TensorType, ...]:
        made = [self.body.types[o.value] for o in self.body.returned[self.has_condition :]]
        rows = made[self.carried :]
        whole = [TensorType((self.length, *row.shape), row.dtype) for row in rows]
        count = [TensorType((), DType.INT64)] if self.counts else []
        return (*made[: self.carried], *whole, *count)

    def run(self, operands: Sequence[Array]) -> list[Array]:
        left = list(operands)
        most = self.trips if self.trips is None else int(self.trips)
        trips = int(left.pop(0).item()) if self.has_limit else None
        if most is not None and not self.is_bounded:
            trips = most if trips is None else min(most, trips)
        goes_on = bool(left.pop(0).item()) if self.has_start else True
        state = [left.pop(0) for _ in range(self.carried)]
        read = [left.pop(0)[:: -1 if is_last else 1] for is_last in self.read]
        rows: list[list[Array]] = [[] for _ in self.written]
        i = 0
        while goes_on and (trips is None or i < trips):
            if self.is_bounded and i == most:
                raise ValueError(f"the loop goes on after {most} iterations, its bound")
            made = _values(self.body, [np.int64(i), *state, *(rows_[i] for rows_ in read), *left])
            if self.has_condition:
                goes_on = bool(made.pop(0).item())
            state, i = made[: self.carried], i + 1
            for held, row in zip(rows, made[self.carried :], strict=True):
                held.append(row)
        ordered = (
            held[::-1] if is_last else held
            for held, is_last in zip(rows, self.written, strict=True)
        )
        count = [np.asarray(i, np.int64)] if self.counts else []
        return [*state, *(np.stack(held) for held in ordered), *count]

    def __repr__(self) -> str:
        trips = "" if self.trips is None else f"trips={self.trips}, "
        return f"Loop({trips}carried={self.carried})"


@dataclass(frozen=True, eq=False)
class BranchRegion(Region):
    """Runs ``then`` if its first operand (bool) holds, and ``other`` if not.

    ``then_reads`` and ``other_reads`` have the numbers of the operands that the bodies read.  Both
    have outputs of the same types, which are the results.
    """

    then: Graph
    other: Graph
    then_reads: tuple[int, ...]
    other_reads: tuple[int, ...]
    label: ClassVar[str] = "branches"

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.then, self.other

    def with_bodies(self, bodies: Sequence[Graph]) -> BranchRegion:
        return replace(self, then=bodies[0], other=bodies[1])

    def types(self) -> tuple[TensorType, ...]:
        return tuple(self.then.types[output.value] for output in self.then.returned)

    def run(self, operands: Sequence[Array]) -> list[Array]:
        holds = bool(operands[0].item())
        body, reads = (
            (self.then, self.then_reads) if holds else (self.other, self.other_reads)
        )  # fmt: skip
        return _values(body, [operands[number] for number in reads])

    def __repr__(self) -> str:
        return "Branches()"


@dataclass(frozen=True)
class Result(Op):
    """Result number ``index`` of ``region``; no kernel computes it."""

    region: Region
    index: int
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.region.bodies

    @property
    def dims(self) -> tuple[Dim, ...]:
        return self.region.dims

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return self.region.types()[self.index]

    def define(self, inputs: Sequence[Any], names: Names) -> ComputeOp:
        raise AssertionError("regions are run by the calls of their bodies")

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        return None if self.region.dims else self.region.run(inputs)[self.index]

    @property
    def label(self) -> str:
        return self.region.label


def _dims_in(graph: Graph) -> Iterator[Dim]:
    """The dimensions that *graph* depends on."""
    yield from dims_of(e for kind in graph.types.values() for e in kind.shape)
    for node in graph.nodes:
        yield from node.op.dims


def _values(body: Graph, operands: Sequence[Any]) -> list[Array]:
    """The outputs of *body* for *operands*."""
    arrays = dict(zip(body.inputs, map(np.asarray, operands), strict=True))
    return constant_values(
        replace(body, inputs=(), constants={**body.constants, **arrays})
    )  # fmt: skip


def with_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """*graph* with the bodies of its regions changed; the same object if it has no regions.

    Passes may have given the results of a region different copies of an operand; now they share it.
    """
    if not any(isinstance(node.op, Result) for node in graph.nodes):
        return graph
    changed: dict[Region, tuple[Region, tuple[str, ...]]] = {}
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if isinstance(node.op, Result):
            region = node.op.region
            if region not in changed:
                made = region.with_bodies(list(map(change, region.bodies)))
                changed[region] = made, node.inputs
            made, inputs = changed[region]
            node = Node(Result(made, node.op.index), inputs, node.output)
        builder.add_node(node)
    return builder.finish(graph.outputs)
