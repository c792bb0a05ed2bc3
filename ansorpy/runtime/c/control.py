"""Loops and branches over calls as C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ansorpy.graph.control import Inside, nested
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent
from ansorpy.runtime.control import Argument, BranchSteps, LoopSteps, PlannedControl, Stride, Tells
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
    plan: ExecutionPlan,
    names: Mapping[Dim, str],
    arrays: Mapping[tuple[Dim, ...], str],
    place: Callable[[Argument], str],
    wrong: str,
) -> list[int | str]:
    """The calls of *plan* by number, and lines of C between them, in order.

    Args:
        arrays: The array with the sizes of several dimensions, by these.
        place: The address of an argument as an expression.
        wrong: The status of a run that counts a size out of its range.
    """
    writer = _Writer(names, place, wrong)
    found: list[int | str] = []
    made = set[tuple[Dim, ...]]()
    for part in nested(len(plan.steps), plan.controls):
        if isinstance(part, int):
            steps, told = plan.steps[part : part + 1], plan.steps[part].tells
        else:
            steps, told = plan.steps[part.control.start : part.control.stop], part.control.tells
        new = dict.fromkeys(step.dims for step in steps if step.dims)
        for dims in (dims for dims in new if dims not in made):
            sizes = ", ".join(names[dim] for dim in dims)
            found.append(f"int64_t {arrays[dims]}[] = {{{sizes}}};")
        made.update(new)
        found += writer.parts([part])
        for tells in told:
            found += writer.count(tells)
    return found


class _Writer:
    def __init__(self, names: Mapping[Dim, str], place: Callable[[Argument], str], wrong: str):
        self.names = names
        self.place = place
        self.wrong = wrong

    def count(self, tells: Tells) -> Iterator[str]:
        """The size that *tells* states."""
        name, comment = self.names[tells.dim], tells.dim.name.replace("*/", "* /")
        yield f"int64_t {name}; /* {comment} */"
        yield f"memcpy(&{name}, {self.place(tells.place)}, sizeof {name});"
        yield f"if ({name} < {tells.dim.low} || {name} > {tells.dim.high}) return {self.wrong};"

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
        most = "INT64_MAX" if loop.is_bounded else f"trips{n}"
        yield "{"
        yield f"const int64_t trips{n} = {trips};"
        yield f"int64_t bound{n} = {most}, row{n};"
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
        if loop.is_bounded:
            yield f"if (row{n} == trips{n}) return {self.wrong};"
        yield f"memcpy({self.place(loop.counter)}, &row{n}, sizeof row{n});"

    def _behind(self, loop: LoopSteps) -> Iterator[str]:
        for c in loop.carried:
            result, spare = f"result{c.current}", f"spare{c.current}"
            yield f"moving{c.current} = moving{c.next};"
            yield f"moving{c.next} = moving{c.current} == {result} ? {spare} : {result};"
        if loop.goes_on is not None:
            yield f"if (!{self._flag(loop.goes_on)}) bound{loop.number} = 0;"
        yield "}"
        if loop.count is not None:
            yield f"memcpy({self.place(loop.count)}, &row{loop.number}, sizeof row{loop.number});"
        for c in loop.carried:
            size = c_extent(c.bytes, self.names)
            copied = f"memcpy(result{c.current}, moving{c.current}, {size})"
            yield f"if (moving{c.current} != result{c.current}) {copied};"
        yield "}"

    def _flag(self, argument: Argument) -> str:
        return f"*({self.place(argument)})"


def _first(part: Part) -> int:
    return part if isinstance(part, int) else part.control.start
