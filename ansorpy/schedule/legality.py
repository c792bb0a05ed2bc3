"""Legality of a schedule: whether it computes its definition, and if not, which step broke it.

These properties of every stage with loops are proved on its statement instances
(:mod:`ansorpy.schedule.instances`):
- The elements that it reads of a stage computed in a loop are in the box that is kept there.
- Iterations that run at the same time and share memory compute one box in it together.
- A sum adds each of its terms once.  Loops may be reordered, fused and run in parallel, but if
  tiles overlap (``tail="shift"``), each repeated iteration must begin its sum anew.
- Threads of a GPU kernel write different elements.  Iterations of a parallel loop may write the
  same one, if tiles overlap: they store the same value.
- The loops of a GPU kernel are bound from the outside in, each to an index of its own.

Interval arithmetic decides most cases and isl the others; cases that isl cannot express, or that
take too long, count as undecided.  Primitives do not run these checks, because build workers replay
schedules without isl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansorpy.errors import AnsorpyError, ScheduleError
from ansorpy.ir.analysis.access import Access, accesses
from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.analysis.isl import decide
from ansorpy.ir.expr import Expr, Reduce, ReduceKind, Var, as_expr, walk
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.loops import (
    BLOCK_INDICES,
    BLOCK_THREADS,
    LAUNCH_INDICES,
    THREAD_INDICES,
    WARP_LANES,
    ForKind,
    ForKinds,
    Scope,
)
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from ansorpy.schedule.bounds.axes import shifted
from ansorpy.schedule.instances import EnclosingLoop, Instances, Kept, instances
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.shared_memory import is_in_shared
from ansorpy.schedule.stage import Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Checked", "check"]

_SHARING: Mapping[Scope, ForKinds] = {
    Scope.LOCAL: frozenset(),
    Scope.WARP: WARP_LANES,
    Scope.SHARED: BLOCK_THREADS,
    Scope.WORKSPACE: frozenset({*LAUNCH_INDICES, ForKind.PARALLEL, ForKind.VTHREAD}),
}
"""By memory scope, the kinds of loops whose iterations share one instance of the memory."""


@dataclass
class Checked:
    """The result of checking a legal schedule.

    Args:
        reads: Number of reads of stages computed in loops that were proved to be in the kept box.
        undecided: Properties that isl could not decide, one line each.
    """

    reads: int = 0
    undecided: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        legal = "legal"
        if self.reads:
            legal += f"; reads proved to be of elements computed in the same loop: {self.reads}"
        return "\n".join([legal, *(f"undecided: {line}" for line in self.undecided)])


def check(state: State) -> Checked:
    """Prove that *state* computes its definition.

    Raises:
        ScheduleError: It does not, or a decision is open.  The error names the step that broke it,
            if the definition itself can be computed.
    """
    if state.is_open:
        raise ScheduleError(
            f"decisions are still open: {', '.join(d.name for d in state.decisions)}",
            hint="state.resolve({...}) gives each column of a decision a number",
        )
    try:
        return _checked(state)
    except AnsorpyError as error:
        raise _blamed(state, error) from None


def _blamed(state: State, error: AnsorpyError) -> ScheduleError:
    """*error*, attributed to the step before which the schedule was legal for the last time.

    No step is to blame if none of these schedules was legal.
    """
    states = [state.initial(state.definition)]
    for step in state.history:
        states.append(states[-1].do(step))
    for before, step in reversed([*zip(states, state.history, strict=False)]):
        if _is_legal(before):
            return ScheduleError(
                error.message, step=step.call(), stage=step.stage,
                program=before.text(step.stage), hint=error.hint,
            )  # fmt: skip
    if isinstance(error, ScheduleError):
        return error
    return ScheduleError(error.message, hint=error.hint)


def _is_legal(state: State) -> bool:
    try:
        _checked(state)
    except AnsorpyError:
        return False
    return True


def _checked(state: State) -> Checked:
    made, checked = instances(state), Checked()
    kernels = {
        _root(i) for i in made.values() if any(loop.kind in LAUNCH_INDICES for loop in i.loops)
    }
    bound = {_root(i) for i in made.values() if any(loop.kind.is_bound for loop in i.loops)}
    for found in made.values():
        root = _root(found)
        if root in kernels:
            _require_bound_outside(found)
        _require_own_indices(found)
        if found.kept is not None:
            # Next to a bound nest, an unbound one becomes a kernel with a single thread.
            is_kernel = root in kernels or (bool(bound) and root not in bound)
            _require_one_box(state, found, is_kernel=is_kernel)
        _require_whole_sums(found, checked)
        _require_one_writer(found, checked)
        for access in accesses(found.op):
            producer = made.get(access.tensor.name)
            if producer is not None:
                _require_carried(state, found, producer.stage)
            if producer is not None and producer.kept is not None:
                _require_same_block(found, producer)
                _require_kept(found, access, producer.kept, checked)
    lowered = lower(state)
    for program in (lowered.run, lowered.bind):
        if program is not None:
            verify(program)
    return checked


def _root(found: Instances) -> str:
    """The stage in whose loops the statement runs."""
    return found.loops[0].stage if found.loops else found.stage.name


# Reads of boxes


def _require_kept(
    reader: Instances, access: Access, kept: Sequence[Kept], checked: Checked
) -> None:
    """Check that all elements that *reader* reads of a tensor are in the box that is *kept*."""
    tensor, guards, unknown = access.tensor, list(reader.guards), len(checked.undecided)
    if access.guard is not None:
        guards.append(reader.at(access.guard))
    for d, (index, part) in enumerate(zip(access.indices, kept, strict=True)):
        offset = reader.at(index) - part.start
        low, high = extents_of(offset, reader.ranges)
        if least(low) >= 0 and most(high - part.extent) < 0:
            continue
        is_inside = _is_inside(reader, offset, part.extent, guards)
        where = f'"{reader.stage.name}" reads "{tensor.name}" at {text(index)} in dimension {d}'
        if is_inside is None and most(part.extent - tensor.shape[d]) < 0:
            checked.undecided.append(where)
        if is_inside is False:
            raise ScheduleError(
                f"{where}, beyond the {part.extent} elements that are computed there",
                stage=tensor.name,
                hint=f'compute "{tensor.name}" at an outer loop, or at the root',
            )
    checked.reads += len(checked.undecided) == unknown


def _is_inside(
    reader: Instances, offset: Expr, extent: Extent, guards: Sequence[Expr]
) -> bool | None:
    """Whether *offset* is in ``[0, extent)`` wherever *reader* runs; None if that is unknown."""
    beyond = reader.domain.where((offset < 0) | (offset >= as_expr(extent)))
    runs = reader.domain.within(guards)
    is_empty = decide(lambda: (beyond.may & runs.may).is_empty())
    return is_empty if is_empty or (beyond.exact and runs.exact) else None


def _require_carried(state: State, reader: Instances, producer: Stage) -> None:
    """Check that *reader* runs where a carried *producer* has the value that it needs.

    What the host sums up needs the value so far, in each iteration.
    """
    carried = producer.carried
    if carried is None or reader.stage.carried is not None:
        return
    inside = any((loop.stage, loop.name) == (carried.host, carried.iter) for loop in reader.outer)
    host = state.stage(carried.host)
    if not inside and reader.stage.op in state.current_dag.leading_to(host.op):
        raise ScheduleError(
            f'"{reader.stage.name}" reads "{producer.name}" once, not in each iteration',
            stage=reader.stage.name,
            hint=f'compute it in loop "{carried.iter}" of "{carried.host}"',
        )


# Memory, and the iterations that share it


def _require_one_box(state: State, found: Instances, *, is_kernel: bool) -> None:
    """Check that iterations that share the memory of a stage compute one box in it together."""
    name, memory = found.stage.name, _memory(state, found.stage)
    if memory is Scope.SHARED and not is_kernel:
        raise ScheduleError(
            f'"{name}" is kept in shared memory outside a GPU kernel', stage=name,
            hint="compute it inside a loop that is bound to a block or thread index",
        )  # fmt: skip
    own = {loop.kind for loop in found.own}
    for loop in found.outer:
        if loop.extent == 1 or loop.kind not in _SHARING[memory]:
            continue
        is_shared_out = loop.kind in own and not _moves(found, loop)
        if loop.kind not in found.stage.shared_by and not is_shared_out:
            raise ScheduleError(
                f'the iterations of loop "{loop.name}" run at the same time and share the memory '
                f'of "{name}", but each needs a part of its own there', stage=name,
                hint=f'compute "{name}" at a loop outside "{loop.name}", or in memory that '
                "these iterations do not share",
            )  # fmt: skip
        if memory is Scope.SHARED and loop.kind in THREAD_INDICES and loop.kind not in own:
            raise ScheduleError(
                f'every thread along {loop.kind.value} writes all of "{name}" in shared memory',
                stage=name, hint=f'bind a loop of "{name}" to {loop.kind.value} to share the work',
            )  # fmt: skip


def _moves(found: Instances, loop: EnclosingLoop) -> bool:
    """Whether the box of a stage computed in *loop* differs between its iterations."""
    return any(loop.var in set(walk(part.start)) for part in found.kept or ())


def _memory(state: State, stage: Stage) -> Scope:
    """The memory of a stage computed in a loop, which determines the iterations that share it."""
    if stage.scope is Scope.WARP:
        return stage.scope
    if is_in_shared(state, stage):
        return Scope.SHARED
    return Scope.WORKSPACE if stage.scope is Scope.WORKSPACE else Scope.LOCAL


# The loops of kernels


def _require_bound_outside(found: Instances) -> None:
    """Check that a statement next to bound loops is inside a kernel, and its memory as well."""
    around = [loop for loop in found.loops if loop.kind is not ForKind.VTHREAD]
    if found.kept is not None:
        around = [loop for loop in around if loop in found.outer]
    first = next((loop for loop in around if loop.kind in LAUNCH_INDICES or loop.extent != 1), None)
    if first is not None and first.kind not in LAUNCH_INDICES:
        raise ScheduleError(
            f'a kernel would be launched in every iteration of "{first.name}"',
            stage=first.stage, hint="bind an outer loop, or move the bound loops outside",
        )  # fmt: skip
    if first is None:
        raise ScheduleError(
            f'"{found.stage.name}" is computed outside the kernel that is launched next to it',
            stage=found.stage.name, hint="bind the outermost loops of every stage",
        )  # fmt: skip


def _require_own_indices(found: Instances) -> None:
    """Check that all elements are computed: each index is bound once, by the stage's own needs."""
    for n, loop in enumerate(found.own):
        if loop.kind not in LAUNCH_INDICES:
            continue
        again = next((other for other in found.own[:n] if other.kind is loop.kind), None)
        if again is not None and (again.extent, loop.extent) != (1, 1):
            raise ScheduleError(
                f'loops "{again.name}" and "{loop.name}" are bound to one index, '
                f"{loop.kind.value}, so they advance together", stage=found.stage.name,
                hint="fuse them, or bind one to another index",
            )  # fmt: skip
        blocks = loop.kind not in THREAD_INDICES and found.kept is not None
        if blocks and (loop.extent != 1 or any(loop.kind is other.kind for other in found.outer)):
            raise ScheduleError(
                f'loop "{loop.name}" is bound to {loop.kind.value}, but every block needs all of '
                f'"{found.stage.name}"',
                stage=found.stage.name, hint="bind it to a thread index",
            )  # fmt: skip


def _require_same_block(reader: Instances, producer: Instances) -> None:
    """Check that blocks read only elements that they computed themselves."""
    for loop in reader.loops:
        if loop.kind in BLOCK_INDICES and loop.extent != 1 and loop not in producer.outer:
            raise ScheduleError(
                f'loop "{loop.name}" of "{loop.stage}" is bound to {loop.kind.value}, but '
                f'"{producer.stage.name}", which its blocks read, is computed outside it',
                stage=producer.stage.name, hint="bind block indices outside all other loops",
            )  # fmt: skip


# Overlapping tiles


def _require_one_writer(found: Instances, checked: Checked) -> None:
    """Check that threads of a kernel write different elements, which overlapping tiles share."""
    bound = [loop.var for loop in found.own if loop.kind in LAUNCH_INDICES and loop.extent != 1]
    overlapping = shifted(found.stage, found.extents)
    if not overlapping or not bound:
        return
    _demand(
        _is_one(found, [found.axes[axis] for axis in found.op.axes], bound), found, checked,
        f'tiles of "{overlapping[0].parent}" overlap, and several threads write the same elements',
        'split by factors that divide, or with tail="guard", or bind another loop',
    )  # fmt: skip


def _demand(
    holds: bool | None, found: Instances, checked: Checked, told: str, hint: str
) -> None:  # fmt: skip
    """Refuse the stage, saying *told*, unless a property *holds*; count it if that is unknown."""
    if holds is None:
        checked.undecided.append(told)
    if holds is False:
        raise ScheduleError(told, stage=found.stage.name, hint=hint)


def _require_whole_sums(found: Instances, checked: Checked) -> None:
    """Check that overlapping tiles add no term to a sum twice.

    A sum begins before its outermost reduce loop that repeats; an iteration that runs again outside
    that loop begins the sum anew, unless another thread runs it, or another lane of a vector: all
    lanes begin before any of them adds.
    """
    body = found.op.body
    adds = isinstance(body, Reduce) and body.kind in (ReduceKind.SUM, ReduceKind.PROD)
    overlapping = shifted(found.stage, found.extents)
    if not overlapping or not adds:
        return
    summed = {it.name for it in found.stage.reduce_iters}
    reduce = [loop for loop in found.own if loop.name in summed]
    begun = next((loop for loop in reduce if loop.extent != 1), reduce[-1])
    around = found.own[: found.own.index(begun)]
    outside = [loop.var for loop in around if loop.kind is not ForKind.VECTORIZED]
    terms = [found.axes[axis] for axis in (*found.op.axes, *found.op.reduce_axes)]
    elements = [found.axes[axis] for axis in found.op.axes]
    every = [loop.var for loop in found.own]
    at_once = [loop.var for loop in found.own if _runs_at_once(loop.kind)]
    for same, apart, who in (
        ([*outside, *terms], every, f'iterations inside "{begun.name}"'),
        (elements, at_once, "threads"),
    ):
        _demand(
            _is_one(found, same, apart), found, checked,
            f'tiles of "{overlapping[0].parent}" overlap, and several {who} add the same terms',
            "cache_write the stage and shift the copy, or split by factors that divide",
        )  # fmt: skip


def _is_one(found: Instances, same: Sequence[Expr], apart: Sequence[Expr]) -> bool | None:
    """Whether all iterations of a stage's own loops that agree in *same* agree in *apart*."""
    fixed: dict[Var, Expr] = {loop.var: as_expr(0) for loop in found.outer}
    domain = found.domain_of(found.own)
    guards = [substitute(guard, fixed) for guard in found.guards]
    one, other = (
        domain.values([substitute(e, fixed) for e in values], guards) for values in (same, apart)
    )
    if not one.exact or not other.exact:
        return None
    return decide(lambda: one.map.reverse().apply_range(other.map).is_single_valued())


def _runs_at_once(kind: ForKind) -> bool:
    """Whether different threads run the iterations of loops of this *kind*."""
    return kind is ForKind.PARALLEL or kind.is_bound
