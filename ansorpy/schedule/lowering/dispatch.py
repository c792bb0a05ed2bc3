"""One program from several, each for a part of the sizes of one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import as_expr
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.loops import Buffer, If, Param, Program, Role, Seq, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import Tensor
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State

__all__ = ["dispatched"]


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
