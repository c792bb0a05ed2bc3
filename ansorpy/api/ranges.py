"""Tune an operator for a range of sizes: a few sizes stand for all, a few schedules serve them.

The definition is tuned at each of the sizes.  Each program found is then timed at the others, and a
shortest path over the sizes chooses which schedule serves which of them (DietCode, MLSys'22, also
tunes at sizes that stand for others; it chooses by a cost model).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, log, sqrt

from ansorpy.api.tuner import Chosen, Tuner
from ansorpy.errors import NoValidProgram, ScheduleError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.measure.check.compare import compare, tolerance
from ansorpy.measure.check.flips import may_flip, without_flips
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.run.buffers import TaskArrays
from ansorpy.runtime.kernel import Kernel
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import History, State

__all__ = ["MOST_SIZES", "require_equal", "scheduled_for_all", "sizes_between", "sizes_for"]

MOST_SIZES = 4
"""Sizes at which a definition is tuned, hence schedules that its kernel has."""


def sizes_for(dims: Sequence[Dim]) -> list[Sizes]:
    """The sizes that stand for all: in geometric steps, the greatest among them.

    >>> n = Dim("n", 1, 512)
    >>> [sizes[n] for sizes in sizes_for([n])]
    [8, 32, 128, 512]
    """
    least_share = max((max(dim.low, 1) / max(dim.high, 1) for dim in dims), default=1.0)
    step = max(least_share, 1 / 4 ** (MOST_SIZES)) ** (1 / MOST_SIZES)
    found: list[Sizes] = []
    for power in range(MOST_SIZES - 1, -1, -1):
        sizes = {dim: _near(dim, dim.high * step**power) for dim in dims}
        if sizes not in found:
            found.append(sizes)
    return found


def _near(dim: Dim, size: float) -> int:
    """The size of *dim* that is nearest to *size*, but not 0 if another one is possible."""
    nearest = round(size / dim.step) * dim.step
    return min(max(nearest, dim.low, dim.step), dim.high)


def sizes_between(dims: Sequence[Dim], tuned: Sequence[Sizes]) -> list[Sizes]:
    """A size below each of *tuned* and above the one before it, odd if possible.

    Tiles divide sizes that a search was run for; they rarely divide another one.
    """
    found: list[Sizes] = []
    before = {dim: max(dim.low, 1) for dim in dims}
    for sizes in tuned:
        found.append({d: _odd(d, sqrt(before[d] * fixed(sizes[d]))) for d in dims})
        before = {d: fixed(sizes[d]) for d in dims}
    return found


def _odd(dim: Dim, size: float) -> int:
    nearest = _near(dim, size)
    return min(nearest | 1, dim.high) if dim.step == 1 else nearest


def scheduled_for_all(
    tuner: Tuner, dag: ComputeDAG, tasks: Mapping[Task, Sizes], others: Mapping[Task, Sizes]
) -> list[State]:
    """Schedules of *dag*, which has dimensions, that together serve all of their sizes.

    A definition with several dimensions gets one schedule.

    Args:
        tasks: The definition at the sizes that stand for all, tuned.
        others: The definition at sizes between them, at which schedules are timed, too.

    Raises:
        NoValidProgram: No program is known for one of *tasks*, none serves all sizes, or isl
            refutes one for all sizes.
    """
    histories = [*_histories(dag, tuner.choose(list(tasks)))]
    if not histories:
        raise NoValidProgram(
            "no schedule that was found at one size serves all sizes",
            hint="tune more trials, or choose a size for each dimension",
        )
    every = {**tasks, **others}
    by_size = sorted(every, key=lambda task: [fixed(n) for n in every[task].values()])
    costs = [_costs(tuner, history, by_size) for history in histories]
    if len(dag.dims) > 1:
        totals = [sum(cost) for cost in costs]
        return _unrefuted(tuner, [State.replay(dag, histories[totals.index(min(totals))])])
    (dim,) = dag.dims
    sizes = [fixed(every[task][dim]) for task in by_size]
    parts: list[State] = []
    for low, high, chosen in _ranges(dim, sizes, _path(costs)):
        parts += _parts(dag, dim, low, high, histories[chosen])
    return _unrefuted(tuner, parts)


def _unrefuted(tuner: Tuner, states: list[State]) -> list[State]:
    """*states*; none of them is refuted by isl at any size."""
    for state in states:
        proof = tuner.prover.prove(state)
        if proof.refuted:
            raise NoValidProgram(f"a program for all sizes is refuted: {proof.refuted[0].message}")
    return states


def _histories(dag: ComputeDAG, chosen: Sequence[Chosen]) -> Iterator[History]:
    """The steps of each chosen program, and again with its parallel loops over sizes inside.

    A team divides a parallel nest into equal parts, but tiles beyond the axis are skipped: if the
    loops over sizes are the outer ones, the last part has less to do than the others.
    """
    known = set[str]()
    for one in chosen:
        state = _for_all(dag, one.state.history)
        for made in () if state is None else (state, *_sizes_inside(state)):
            if str(made.history) not in known:
                known.add(str(made.history))
                yield made.history


def _for_all(dag: ComputeDAG, history: History) -> State | None:
    """The schedule *history* for all sizes; None if it needs a number that they do not share."""
    try:
        state = State.replay(dag, history)
        lower(state)
    except ScheduleError:
        return None
    return state


def _sizes_inside(state: State) -> Iterator[State]:
    for stage in state.stages:
        mark = stage.parallel
        if mark is None or stage.attach is not None:
            continue
        loops = [it for it in stage.iters if it.name in mark.iters]
        order = sorted(loops, key=lambda it: not isinstance(it.extent, int))
        if order != loops:
            yield state.reorder(stage, order)


def _costs(tuner: Tuner, history: History, tasks: Sequence[Task]) -> list[float]:
    """The logarithm of a schedule's seconds for each of *tasks*; infinite where it fails."""
    found = []
    for task in tasks:
        try:
            state = State.replay(task.dag, history)
        except ScheduleError:
            found.append(inf)
            continue
        [result] = measure_recorded(tuner.runner, tuner.database, task, [state])
        found.append(log(result.median_s) if result.ok else inf)
    return found


_CHANGE = log(1.02)
"""What another schedule must gain at the sizes that it serves: it is more code."""


def _path(costs: Sequence[Sequence[float]]) -> list[int]:
    """Which schedule serves each size: the cheapest path."""
    every = range(len(costs))
    best: list[tuple[float, list[int]]] = [(costs[n][0], [n]) for n in every]
    for size in range(1, len(costs[0])):
        best = [
            min((total + costs[n][size] + (_CHANGE if path[-1] != n else 0.0), [*path, n])
                for total, path in best)
            for n in every
        ]  # fmt: skip
    return min(best)[1]


def _ranges(dim: Dim, sizes: Sequence[int], path: Sequence[int]) -> list[tuple[int, int, int]]:
    """The sizes that each schedule of *path* serves: from, to, number of the schedule.

    Between two of *sizes*, the schedules change in the (geometric) middle.
    """
    found: list[tuple[int, int, int]] = []
    low = dim.low
    for n, (size, schedule) in enumerate(zip(sizes, path, strict=True)):
        if n + 1 == len(path):
            found.append((low, dim.high, schedule))
        elif schedule != path[n + 1]:
            middle = int(sqrt(size * sizes[n + 1])) // dim.step * dim.step
            found.append((low, max(size, middle), schedule))
            low = found[-1][1] + dim.step
    return found


def _parts(dag: ComputeDAG, dim: Dim, low: int, high: int, history: History) -> list[State]:
    """The schedule *history* for the sizes from *low* to *high*, apart for those below its boxes.

    Boxes of fixed size are kept in registers.  Tiles may exceed the axis: the rest is skipped.
    """
    sizes = range(low, high + 1, dim.step)

    def boxed(size: int) -> bool:
        return _has_fixed_boxes(_scheduled(dag, dim, size, high, history))

    first = bisect_left(sizes, True, key=boxed)
    if first in (0, len(sizes)):
        return [_scheduled(dag, dim, low, high, history)]
    below = _scheduled(dag, dim, low, sizes[first - 1], history)
    return [below, _scheduled(dag, dim, sizes[first], high, history)]


def _scheduled(dag: ComputeDAG, dim: Dim, low: int, high: int, history: History) -> State:
    part = dag_at(dag, {dim: dim_extent(replace(dim, low=low, high=high))})
    return State.replay(part, history)


def _has_fixed_boxes(state: State) -> bool:
    """True if the box of each stage that is computed in a loop has the same size in every call."""
    bounds = Bounds(state, {})
    return all(
        isinstance(span.extent, int)
        for stage in state.stages
        if stage.attach is not None
        for span in bounds.stored(stage.name)
    )


def require_equal(kernel: Kernel, reference: Kernel, dag: ComputeDAG, seed: int) -> None:
    """Check what *kernel* computes of *dag*, in which no size is open, against *reference*.

    Raises:
        NoValidProgram: An output differs by more than rounding.
    """
    values = TaskArrays(dag, seed).values()
    constants = {op.name: values[op.name] for op in dag.args if op.constant}
    arrays = [values[op.name] for op in dag.args if not op.constant]
    found = []
    for one in (kernel, reference):
        outputs = (one.bind(**constants) if constants else one)(*arrays)
        found.append(outputs if isinstance(outputs, tuple) else (outputs,))
    for op, got, want in zip(dag.outputs, *found, strict=True):
        assert isinstance(op, ComputeOp)
        allowed = tolerance(dag, op)
        if may_flip(dag, op):
            got = without_flips(got, want, allowed, 0.0)
        result = compare(op.name, got, want, allowed)
        if not result.ok:
            raise NoValidProgram(f"the kernel for all sizes is wrong: {result.reason}")
