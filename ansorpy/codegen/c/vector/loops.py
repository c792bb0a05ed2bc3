"""Vector loops, cut into chunks of lanes that are unrolled or looped over."""

from __future__ import annotations

import math

from ansorpy.codegen.accesses import accesses, free_vars
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.vector.lanes import Lanes
from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.vectors import Chunk, VectorSpace, chunks, vector_space
from ansorpy.ir.expr import Expr, Var, as_expr
from ansorpy.ir.loops import For, ForKind, walk_stmts
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify_stmt

__all__ = ["vector_loop"]

_UNROLLED_CHUNKS = 2
"""Maximum chunks that become straight-line code; more stay a loop unless they use registers."""


def vector_loop(e: Emitter, loop: For) -> None:
    """Emit *loop*, and vector loops directly in it, as vectors where the plan says so."""
    width, space = e.unit.lanes.get(loop.var, 1), vector_space(loop)
    inner = space.extent // space.loops[0][1]
    if e.lanes is not None or width == 1:
        e.statement(For(loop.var, loop.extent, ForKind.SERIAL, loop.body))
    elif space.extent // width <= _UNROLLED_CHUNKS or _uses_variables(e, space):
        _chunks(e, space, chunks(space.extent, width), as_expr(0))
    elif inner >= width:
        e.statement(For(loop.var, loop.extent, ForKind.SERIAL, loop.body))
    else:
        _looped(e, space, width, width // math.gcd(inner, width))


def _uses_variables(e: Emitter, space: VectorSpace) -> bool:
    lanes = {var for var, _ in space.loops}
    return any(
        buffer in e.unit.variables and free_vars(*indices) & lanes
        for s in walk_stmts(space.body)
        for buffer, indices in accesses(s)
    )


def _looped(e: Emitter, space: VectorSpace, width: int, group: int) -> None:
    """Emit a loop over groups of *group* outermost iterations, which fill whole vectors, and the
    remainder."""
    (var, outer), block = space.loops[0], group * (space.extent // space.loops[0][1])
    number, done = Var(var.name), outer // group * block
    with e.names.block():
        name = e.names.give(number)
        count, kind = outer // group, e.indices.narrow
        with (
            e.block(f"for ({kind} {name} = 0; {name} < {count}; ++{name})", f"{group} at a time"),
            e.variable(number, Code(name), (0, count - 1)),
        ):
            _chunks(e, space, chunks(block, width), number * group)
    rest = chunks(space.extent - done, width) if space.extent > done else []
    _chunks(e, space, rest, as_expr(outer // group * group))


def _chunks(e: Emitter, space: VectorSpace, parts: list[Chunk], start: Expr) -> None:
    """Emit the body for each chunk, counted from iteration *start* of the outermost loop."""
    for part in parts:
        lanes, e.chunk = _lanes(space, part, start), part.start
        if part.width == 1:
            body = substitute(space.body, {var: lanes.in_lane(var, 0) for var, _ in space.loops})
            e.is_first = False
            e.statement(simplify_stmt(body, e.ranges))
            continue
        e.lanes = lanes
        for var, extent in space.loops:
            e.bind(var, (0, extent - 1))
        e.is_first = False
        e.statement(space.body)
        for var, _ in space.loops:
            e.unbind(var)
        e.lanes = None
    e.chunk = None


def _lanes(space: VectorSpace, part: Chunk, start: Expr) -> Lanes:
    steps: dict[Var, tuple[int, ...]] = {}
    starts: dict[Var, Expr] = {}
    inner = 1
    active = [part.start + min(k, part.active - 1) for k in range(part.width)]
    for position, (var, extent) in reversed(list(enumerate(space.loops))):
        numbers = (n // inner for n in active)
        steps[var] = tuple(numbers) if position == 0 else tuple(n % extent for n in numbers)
        starts[var] = start if position == 0 else as_expr(0)
        inner *= extent
    return Lanes(part.width, part.active, starts, steps)
