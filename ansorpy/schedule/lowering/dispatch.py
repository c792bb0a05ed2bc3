"""One program from several, each for a part of the sizes of one dimension."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import as_expr
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.loops import Buffer, If, Param, Program, Role, Seq, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import Tensor
from ansorpy.ir.text.printer import text
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State

__all__ = ["dispatched", "lower_for_all", "split_below_boxes"]


def lower_for_all(state: State) -> Lowered:
    """The program of *state*; if it has dimensions, in parts as :func:`split_below_boxes` says.

    Raises:
        ScheduleError, LoweringError: As :func:`~ansorpy.schedule.lowering.program.lower`.
    """
    if not state.definition.dims:
        return lower(state)
    parts = split_below_boxes(state, state.definition.main_dim)
    return dispatched(state.definition, [(part, lower(one)) for one, part in parts])


def split_below_boxes(state: State, dim: Dim) -> list[tuple[State, Dim]]:
    """*state* for all sizes of *dim*, apart for those at which its boxes are not yet of one size.

    Boxes of fixed size are kept in registers.  Tiles may exceed the axis: the rest is skipped.
    """
    sizes = range(dim.low, dim.high + 1, dim.step)

    def scheduled(first: int, last: int) -> tuple[State, Dim]:
        part = replace(dim, low=first, high=last)
        definition = dag_at(state.definition, {dim: dim_extent(part)})
        return State.replay(definition, state.history), part

    def boxed(size: int) -> bool:
        return _has_fixed_boxes(scheduled(size, dim.high)[0])

    first = bisect_left(sizes, True, key=boxed)
    if first in (0, len(sizes)):
        return [scheduled(dim.low, dim.high)]
    return [scheduled(dim.low, sizes[first - 1]), scheduled(sizes[first], dim.high)]


def _has_fixed_boxes(state: State) -> bool:
    """True if the box of each stage that is computed in a loop has the same size in every call."""
    bounds = Bounds(state, {})
    return all(
        isinstance(span.extent, int)
        for stage in state.stages
        if stage.attach is not None
        for span in bounds.region(stage.name)
    )


def dispatched(definition: ComputeDAG, parts: Sequence[tuple[Dim, Lowered]]) -> Lowered:
    """The program that runs the one of *parts* whose dimension has the size of the call.

    The parts are programs of *definition*, whose dimension of that name has other ranges in each.
    The result is for all of these sizes.  Parts that pack the constants in the same way share them.

    Raises:
        UsageError: The ranges are not consecutive, or are not multiples of one step.
    """
    ordered = sorted(parts, key=lambda part: part[0].low)
    whole = _whole([dim for dim, _ in ordered])
    if len(ordered) == 1:
        return ordered[0][1]
    merger = _Merger(lower(State.initial(definition)).run)
    runs, binds = [], []
    packings: dict[str, int] = {}
    for number, (dim, lowered) in enumerate(ordered):
        sizes = {dim: dim_extent(whole)}
        made = set[str]()
        if lowered.bind is not None:
            made = {p.buffer.name for p in lowered.bind.params if p.role is Role.OUTPUT}
            first = packings.setdefault(text(lowered.bind), number)
            if first == number:
                binds.append(merger.merged(program_at(lowered.bind, sizes), number, made))
            number = first
        runs.append(merger.merged(program_at(lowered.run, sizes), number, made))
    body = runs[-1].body
    for (dim, _), run in reversed(list(zip(ordered[:-1], runs[:-1], strict=True))):
        body = If(as_expr(dim_extent(whole)) <= dim.high, run.body, body)
    run = Program(runs[0].name, _params(runs), body)
    if not binds:
        return Lowered(run, None)
    packing = Seq(tuple(bind.body for bind in binds))
    return Lowered(run, Program(binds[0].name, _params(binds), packing))


def _whole(dims: Sequence[Dim]) -> Dim:
    """The dimension that has all sizes of *dims*, which are in order."""
    for dim, after in zip(dims, dims[1:], strict=False):
        if after.low != dim.high + dim.step or (after.name, after.step) != (dim.name, dim.step):
            raise UsageError(
                f"{after} does not continue {dim}",
                hint="let each range begin one step after the end of the one before it",
            )
    return replace(dims[0], high=dims[-1].high)


class _Merger:
    """Lets all programs use one buffer for each parameter of the same name.

    Those of *whole* have their extents at all sizes; in a part, some may be numbers.
    """

    def __init__(self, whole: Program) -> None:
        self._shared = {param.buffer.name: param.buffer for param in whole.params}

    def merged(self, program: Program, number: int, made: set[str]) -> Program:
        """*program* on shared buffers; constants in *made* are those of part *number* alone."""
        became: dict[Buffer, Buffer] = {}
        params = []
        for param in program.params:
            buffer = param.buffer
            if buffer.name in made and number:
                buffer = replace(buffer, name=f"{buffer.name}.{number}")
            shared = self._shared.setdefault(buffer.name, buffer)
            became[param.buffer] = shared
            params.append(Param(shared, param.role))
        body: Stmt = _OnBuffers(became).stmt(program.body)
        return Program(program.name, tuple(params), body)


class _OnBuffers(Rewriter):
    def __init__(self, became: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self._became = became

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        return self._became.get(source, source) if isinstance(source, Buffer) else source


def _params(programs: Sequence[Program]) -> tuple[Param, ...]:
    """The parameters of all *programs*, each once, by role."""
    found = {param.buffer: param for program in programs for param in program.params}
    roles = [Role.INPUT, Role.CONSTANT, Role.OUTPUT]
    return tuple(sorted(found.values(), key=lambda param: roles.index(param.role)))
