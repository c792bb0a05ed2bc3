"""Loops and branches over calls as C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ansorpy.codegen.clike.comments import in_comment
from ansorpy.graph.control import Inside, nested
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent
from ansorpy.runtime.control import Argument, LoopSteps, PlannedControl, Stride, Tells
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
    return list(_Writer(plan, names, arrays, place, wrong).parts(
        nested(len(plan.steps), plan.controls), ()
    ))  # fmt: skip


class _Writer:
    def __init__(
        self,
        plan: ExecutionPlan,
        names: Mapping[Dim, str],
        arrays: Mapping[tuple[Dim, ...], str],
        place: Callable[[Argument], str],
        wrong: str,
    ):
        self.plan = plan
        self.names = names
        self.arrays = arrays
        self.place = place
        self.wrong = wrong
        self.unknown = set(plan.counted)
        self.made = set[tuple[Dim, ...]]()

    def parts(
        self, parts: Sequence[Part], around: tuple[PlannedControl, ...]
    ) -> Iterator[int | str]:  # fmt: skip
        """Calls and lines for *parts*, which are inside the loops and branches *around* them."""
        for part in parts:
            spans = (part, part + 1) if isinstance(part, int) else _ends(part.control)
            if not around:
                yield from self._filled(*spans)
            if isinstance(part, int):
                yield part
                told = self.plan.steps[part].tells
            else:
                yield from self._control(part, around)
                told = part.control.tells
            own = [tells for tells in told if tells.depth == len(around)]
            for tells in own:
                yield from self._count(tells)
            if around and own:
                yield from self._filled(*_ends(around[-1]))

    def _filled(self, start: int, stop: int) -> Iterator[str]:
        """The arrays of sizes that calls from number *start* to *stop* take, if these are known."""
        for step in self.plan.steps[start:stop]:
            if step.dims and step.dims not in self.made and self.unknown.isdisjoint(step.dims):
                self.made.add(step.dims)
                sizes = ", ".join(self.names[dim] for dim in step.dims)
                yield f"int64_t {self.arrays[step.dims]}[] = {{{sizes}}};"

    def _count(self, tells: Tells) -> Iterator[str]:
        """The size that *tells* states."""
        name, comment = self.names[tells.dim], in_comment(tells.dim.name)
        self.unknown.discard(tells.dim)
        yield f"int64_t {name}; /* {comment} */"
        yield f"memcpy(&{name}, {self.place(tells.place)}, sizeof {name});"
        yield f"if ({name} < {tells.dim.low} || {name} > {tells.dim.high}) return {self.wrong};"

    def _control(
        self, part: Inside[PlannedControl], around: tuple[PlannedControl, ...]
    ) -> Iterator[int | str]:  # fmt: skip
        inside = (*around, part.control)
        if isinstance(part.control, LoopSteps):
            yield from self._before(part.control)
            yield from self.parts(part.parts, inside)
            yield from self._behind(part.control)
        else:
            then, other = part.split(part.control.middle)
            yield f"if ({self._flag(part.control.condition)}) {{"
            yield from self.parts(then, inside)
            yield "} else {"
            yield from self.parts(other, inside)
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
            # Empty tensors may be at NULL, which memcpy must not get.
            filled = "" if isinstance(c.bytes, int) and c.bytes else f"{size} > 0 && "
            yield f"if ({filled}moving{c.current} != result{c.current}) {copied};"
        yield "}"

    def _flag(self, argument: Argument) -> str:
        return f"*({self.place(argument)})"


def _ends(control: PlannedControl) -> tuple[int, int]:
    return control.start, control.stop
