"""Bodies as regions of the graph: compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.control.scopes import Inner, Translator
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Count, Output
from ansorpy.graph.ops import TensorType
from ansorpy.graph.regions import LoopRegion, Result
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dim_extent, dims_of, most
from ansorpy.ir.sizes import at_most
from ansorpy.ir.symbols import Dim

__all__ = ["Body", "Boundless", "LoopPlan", "Varying", "compiled_loop"]


class Varying(Unsupported):
    """A loop cannot be compiled as one, because its iterations are not alike."""


class Boundless(Varying):
    """A loop cannot be compiled, because nothing says how many rows it has at most."""


@dataclass(frozen=True)
class LoopPlan:
    """What is known of a loop before its body is translated.

    Args:
        trips: The number of iterations, at most, if it is known.
        limit: A graph value that has a bound of it.
        begins: A graph value that says whether there is any iteration.
        is_loop: Whether the body takes the number of the iteration and the condition, and has
            another condition as its first output.
        state: The graph values that the first iteration reads.
        read: Graph values of which each iteration reads a row, the first or the last one first.
        written: For each output that is a row, whether the last one is written first.
        wanted: Whether each of these is needed.
        is_bounded: Whether ``trips`` is only a bound that the user gave.
    """

    trips: AnyExtent | None
    limit: str | None = None
    begins: str | None = None
    is_loop: bool = False
    state: tuple[str, ...] = ()
    read: tuple[tuple[str, bool], ...] = ()
    written: tuple[bool, ...] = ()
    wanted: tuple[bool, ...] = ()
    is_bounded: bool = False


def compiled_loop(
    translator: Translator, ctx: NodeContext, body: GraphProto, plan: LoopPlan
) -> list[Value]:
    """The results of a loop whose *body* is compiled once.

    Raises:
        Blamed: Nodes of the body are refused.
        Varying: The body's results have other types than it expects.
    """
    types = ctx.builder.types
    with translator.inside() as inner:
        loop = Body(inner, ctx, plan)
        given = dict(zip(_names(body), loop.inputs(types), strict=True))
        made = translator.inlined(body, given | ctx.numbered(loop.counter))
        flat = [value for value in made if isinstance(value, str)]
        if len(flat) < len(made):
            raise Varying("results", "a sequence changes from iteration to iteration")
        return loop.emit(flat)


def _names(body: GraphProto) -> list[str]:
    return [info.name for info in body.input]


class Body:
    """The body of a loop as a graph."""

    def __init__(self, inner: Inner, ctx: NodeContext, plan: LoopPlan):
        self.inner = inner
        self.ctx = ctx
        self.plan = plan
        self.counter = inner.add_input("iteration", TensorType((), DType.INT64))
        self.state: list[str] = []
        self.rows: list[str] = []

    def inputs(self, types: dict[str, TensorType]) -> list[Value]:
        """What the inputs of the body stand for."""
        builder, outside = self.inner.builder, self.ctx.builder
        for value in self.plan.state:
            kind = types[value]
            self.state.append(
                builder.add_empty(value, kind, outside.narrow.get(value)) if kind.size == 0
                else self.inner.add_part(value, kind)
            )  # fmt: skip
        for value, _ in self.plan.read:
            kind = types[value]
            self.rows.append(self.inner.add_part(value, TensorType(kind.shape[1:], kind.dtype)))
        values: list[Value] = [*self.state, *self.rows]
        if self.plan.is_loop:
            holds = builder.add_constant("condition", np.asarray(True))
            return [self.counter, holds, *values]
        return values

    def emit(self, made: Sequence[str]) -> list[Value]:
        """Emit the loop, whose body has these results, outside; return its own."""
        left, plan = list(made), self.plan
        condition = left.pop(0) if plan.is_loop else None
        if condition is not None and self._is_true(condition):
            condition = None
        count = len(plan.state)
        wanted = [number for number, needed in enumerate(plan.wanted) if needed]
        is_open = plan.is_bounded or plan.limit or plan.begins or condition
        counts = bool(wanted and is_open)
        if wanted and plan.trips is None:
            raise Boundless("rows of a loop", "give the loop a known number of iterations at most")
        after = [self._as_before(*pair) for pair in zip(self.state, left[:count], strict=True)]
        changed = [n for n in range(count) if after[n] != self.state[n]]
        self._demand_fixed([left[count + n] for n in wanted])
        outputs = [*([] if condition is None else [condition]), *(after[n] for n in changed),
                   *(left[count + n] for n in wanted)]  # fmt: skip
        kept = [value for n, value in enumerate(self.state) if n not in changed]
        kept = [value for value in kept if value not in self.inner.builder.constants]
        graph = self.inner.finish(
            [Output(f"made.{n}", value) for n, value in enumerate(outputs)], kept
        )
        region = LoopRegion(
            graph, plan.trips, carried=len(changed), has_limit=plan.limit is not None,
            has_start=plan.begins is not None, has_condition=condition is not None,
            read=tuple(is_last for _, is_last in plan.read),
            written=tuple(plan.written[n] for n in wanted),
            length=self._length(counts) if wanted else 0, counts=counts,
            is_bounded=plan.is_bounded,
        )  # fmt: skip
        operands = [
            *filter(None, (plan.limit, plan.begins)), *(plan.state[n] for n in changed),
            *(value for value, _ in plan.read), *self.inner.captured,
            *(plan.state[self.state.index(value)] for value in kept),
        ]  # fmt: skip
        return self._results(region, operands, changed, wanted)

    def _results(
        self, region: LoopRegion, operands: list[str], changed: list[int], wanted: list[int]
    ) -> list[Value]:
        """The final state and all rows, as far as they are wanted, of *region*."""
        count = len(self.plan.state)
        if region.counts:
            self._count(region, operands)
        numbers = [*changed, *(count + n for n in wanted)]
        found = {
            number: self.ctx.emit(Result(region, index), operands)
            for index, number in enumerate(numbers)
        }
        total = count + len(self.plan.written)
        first = dict(enumerate(self.plan.state))
        return [found.get(number, first.get(number, "")) for number in range(total)]

    def _length(self, counts: bool) -> AnyExtent:
        """The number of rows: that of iterations, which a run counts if it depends on data."""
        trips = self.plan.trips
        assert trips is not None
        if not counts:
            return trips
        return dim_extent(Dim(self.ctx.builder.dim_name(self._name), 0, most(trips)))

    @property
    def _name(self) -> str:
        """The name of the number of iterations."""
        return f"{self.ctx.node.output[0]}.iterations"

    def _count(self, region: LoopRegion, operands: list[str]) -> None:
        """Let the number of iterations tell the number of rows."""
        builder, trips = self.ctx.builder, self.plan.trips
        (dim,) = dims_of([region.length])
        assert trips is not None
        value = builder.emit(Result(region, len(region.types()) - 1), operands, self._name)
        known = {count.dim: count.capacity for count in builder.counts.values()}
        builder.counts[value] = Count(dim, at_most(trips, known))

    def _demand_fixed(self, rows: Sequence[str]) -> None:
        """Refuse *rows* whose own sizes depend on data of the iteration."""
        dims = {count.dim for count in self.inner.builder.counts.values()}
        for row in rows:
            kind = self.inner.builder.types[row]
            if not dims.isdisjoint(dims_of(kind.shape)):
                raise Unsupported(f"rows {kind}", "their sizes may not depend on data")

    def _is_true(self, condition: str) -> bool:
        array = self.inner.builder.constants.get(condition)
        return array is not None and bool(array.item())

    def _as_before(self, before: str, after: str) -> str:
        """The value *after* an iteration with the shape of that *before* it.

        Raises:
            Varying: It has another type.
        """
        types = self.inner.builder.types
        old, new = types[before], types[after]
        if old == new:
            return after if old.size != 0 else before
        if old.dtype is new.dtype and old.size == new.size == 1:
            return EmitsBeside(self.inner.builder, after).reshape(after, old.shape)
        raise Varying(
            "a carried value",
            f"it is {old} before an iteration and {new} after it; they must be equal",
        )
