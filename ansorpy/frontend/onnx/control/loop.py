"""Loop and Scan: compiled as loops, or translated iteration by iteration where these differ.

A loop of up to four iterations is unrolled, so that kernels span several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx import GraphProto

from ansorpy.errors import UnsupportedRow
from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.control.regions import Boundless, LoopPlan, Varying, compiled_loop
from ansorpy.frontend.onnx.control.scopes import Blamed, Translator, body_of
from ansorpy.frontend.onnx.control.unrolled import unrolled_loop
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.unsupported import UNKNOWN, Unknown, Unsupported
from ansorpy.ir.extents import AnyExtent, least

__all__ = ["OPERATORS", "run_loop"]

_FEW = 4
"""Iterations that are unrolled although they could be a loop."""
_ENDLESS = 1 << 31
"""Iterations that stand for a loop without end."""
_MOST_UNROLLED = 256
"""Iterations that are unrolled because they cannot be a loop."""


def loop(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The carried values after the last iteration, then the rows that iterations gave."""
    body = body_of(ctx, "body")
    state = [translator.value(name) for name in ctx.node.input[2:]]
    trips, limit = _trips(ctx)
    begins = None
    if ctx.has_input(1):
        held = ctx.builder.constants.get(ctx.input(1))
        if held is None:
            begins = ctx.input(1)
        elif not held.item():
            trips, limit = 0, None
    written = (False,) * (len(body.output) - 1 - len(state))
    wanted = tuple(ctx.is_output_used(len(state) + n) for n in range(len(written)))
    plan = LoopPlan(trips, limit, begins, is_loop=True, written=written, wanted=wanted)
    bounds = [ctx.most_rows(len(state) + n) for n, needed in enumerate(wanted) if needed]
    given = [bound for bound in bounds if bound is not None]
    if given and not isinstance(trips, int):
        plan = replace(plan, trips=min(given), limit=limit, is_bounded=True)
    return run_loop(translator, ctx, body, plan, state)


def _trips(ctx: NodeContext) -> tuple[AnyExtent | None, str | None]:
    """The number of iterations if it is known, or the value that has it; neither if it is open.

    It is open, too, if a run could not do that many: then the condition ends the loop.
    """
    if not ctx.has_input(0):
        return None, None
    value = ctx.input(0)
    if value in ctx.known or value in ctx.builder.constants:
        (trips,) = ctx.extents(0, "trip count")
        if least(trips) >= _ENDLESS:
            return None, None
        return (max(trips, 0) if isinstance(trips, int) else trips), None
    return None, value


def run_loop(
    translator: Translator,
    ctx: NodeContext,
    body: GraphProto,
    plan: LoopPlan,
    state: Sequence[Value],
) -> list[Value]:
    """The results of the loop that *plan* describes, but for the *state* before it."""
    trips = plan.trips if plan.begins is None and not plan.is_bounded else None
    tensors = tuple(value for value in state if isinstance(value, str))

    def compiled() -> list[Value]:
        if len(tensors) < len(state):
            limit = f"the number of iterations must be known, and at most {_MOST_UNROLLED}"
            raise Varying("a carried sequence", limit)
        whole = replace(plan, state=tensors)
        return compiled_loop(translator, ctx, body, whole)

    def unrolled() -> list[Value]:
        return unrolled_loop(translator, ctx, body, plan, state)

    if not isinstance(trips, int):
        return _or_known(translator, ctx, plan, compiled)
    if trips == 0:
        return unrolled()
    ways = [unrolled, compiled] if trips <= _FEW else [compiled, unrolled]
    return _first_possible(translator, ways if trips <= _MOST_UNROLLED else [compiled])


def _first_possible(
    translator: Translator, ways: Sequence[Callable[[], list[Value]]]
) -> list[Value]:
    """What the first possible one of *ways* gives; if there is none, why the last is impossible."""
    count = len(translator.rows)
    for way in ways[:-1]:
        try:
            return way()
        except (Blamed, Unsupported):
            del translator.rows[count:]
    return ways[-1]()


def _or_known(
    translator: Translator, ctx: NodeContext, plan: LoopPlan, way: Callable[[], list[Value]]
) -> list[Value]:
    """What *way* gives; if it needs equal iterations, the length of the loop has to be known."""
    count = len(translator.rows)
    try:
        return way()
    except Boundless as reason:
        raise _unbounded(ctx, plan, reason) from None
    except Varying:
        _demand_known(ctx, plan)
        raise
    except Blamed:
        if any(map(_is_unknown, translator.rows[count:])):
            more = translator.rows[count:]
            del translator.rows[count:]
            _demand_known(ctx, plan)
            translator.rows += more
        raise


def _unbounded(ctx: NodeContext, plan: LoopPlan, reason: Boundless) -> Unsupported:
    """Why a loop whose rows have no bound is refused, with the inputs that would give one."""
    rows = len(ctx.node.input) - 2 + plan.wanted.index(True)
    if plan.limit is None:
        return Unknown(reason.attribute, (), ctx.node.output[rows], reason.advice)
    return ctx.unknown("number of iterations", plan.limit, ctx.node.input[0])


def _is_unknown(row: UnsupportedRow) -> bool:
    return row.advice.startswith(UNKNOWN)


def _demand_known(ctx: NodeContext, plan: LoopPlan) -> None:
    """Refuse a loop whose length is computed at run time, although it could be given."""
    if plan.limit is not None:
        ctx.constant(0, "number of iterations")
    if plan.begins is not None:
        ctx.constant(1, "condition")
    if plan.trips is not None and plan.is_loop:
        ctx.number(plan.trips, "number of iterations")


OPERATORS = {"Loop": loop}
