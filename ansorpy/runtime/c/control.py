"""Loops and branches over calls as C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ansorpy.graph.control import Inside, nested
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent
from ansorpy.runtime.control import Argument, BranchSteps, LoopSteps, PlannedControl, Stride
from ansorpy.runtime.execution_plan import ExecutionPlan

__all__ = ["c_strides", "controlled"]

Part = int | Inside[PlannedControl]


def c_strides(strides: Sequence[Stride], names: Mapping[Dim, str]) -> str:
    """What *strides* add to an address."""
    return "".join(f" + {_row(stride)} * ({c_extent(stride.bytes, names)})" for stride in strides)


def _row(stride: Stride) -> str:
    row = f"row{stride.loop}"
    return f"(trips{stride.loop} - 1 - {row})" if stride.is_last else row


def controlled(
    plan: ExecutionPlan, names: Mapping[Dim, str], place: Callable[[Argument], str]
) -> list[int | str]:
    """The calls of *plan* by number, and lines of C between them, in order.

    Args:
        place: The address of an argument as an expression.
    """
    return list(_Writer(names, place).parts(nested(len(plan.steps), plan.controls)))


class _Writer:
    def __init__(self, names: Mapping[Dim, str], place: Callable[[Argument], str]):
        self.names = names
        self.place = place

    def parts(self, parts: Sequence[Part]) -> Iterator[int | str]:
        for part in parts:
            if isinstance(part, int):
                yield part
            elif isinstance(part.control, LoopSteps):
                yield from self._before(part.control)
                yield from self.parts(part.parts)
                yield from self._behind(part.control)
            else:
                yield from self._branch(part.control, part.parts)

    def _branch(self, branch: BranchSteps, parts: Sequence[Part]) -> Iterator[int | str]:
        cut = sum(_first(part) < branch.middle for part in parts)
        yield f"if ({self._flag(branch.condition)}) {{"
        yield from self.parts(parts[:cut])
        yield "} else {"
        yield from self.parts(parts[cut:])
        yield "}"

    def _before(self, loop: LoopSteps) -> Iterator[str]:
        n = loop.number
        trips = "INT64_MAX" if loop.trips is None else c_extent(loop.trips, self.names)
        yield "{"
        yield f"const int64_t trips{n} = {trips};"
        yield f"int64_t bound{n} = trips{n}, row{n};"
        if loop.limit is not None:
            yield f"memcpy(&row{n}, {self.place(loop.limit)}, sizeof row{n});"
            yield f"if (row{n} < bound{n}) bound{n} = row{n};"
        if loop.begins is not None:
            yield f"if (!{self._flag(loop.begins)}) bound{n} = 0;"
        for c in loop.carried:
            result, spare = f"result{c.current}", f"spare{c.current}"
            first = spare if isinstance(loop.trips, int) and loop.trips % 2 == 0 else result
            yield f"unsigned char *const {result} = {self.place(c.result)};"
            yield f"unsigned char *const {spare} = {self.place(c.spare)};"
            yield f"unsigned char *moving{c.current} = {self.place(c.before)};"
            yield f"unsigned char *moving{c.next} = {first};"
        yield f"for (row{n} = 0; row{n} < bound{n}; ++row{n}) {{"
        yield f"memcpy({self.place(loop.counter)}, &row{n}, sizeof row{n});"

    def _behind(self, loop: LoopSteps) -> Iterator[str]:
        for c in loop.carried:
            result, spare = f"result{c.current}", f"spare{c.current}"
            yield f"moving{c.current} = moving{c.next};"
            yield f"moving{c.next} = moving{c.current} == {result} ? {spare} : {result};"
        if loop.goes_on is not None:
            yield f"if (!{self._flag(loop.goes_on)}) break;"
        yield "}"
        for c in loop.carried:
            size = c_extent(c.bytes, self.names)
            copied = f"memcpy(result{c.current}, moving{c.current}, {size})"
            yield f"if (moving{c.current} != result{c.current}) {copied};"
        yield "}"

    def _flag(self, argument: Argument) -> str:
        return f"*({self.place(argument)})"


def _first(part: Part) -> int:
    return part if isinstance(part, int) else part.control.start
