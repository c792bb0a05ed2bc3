"""The tasks that a definition is tuned as: itself, or itself at the sizes that stand for all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise, product
from math import isqrt, prod, sqrt

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, at, fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.size_ranges import SizeRange

__all__ = ["MOST_SIZES", "TaskGroup", "sizes_between", "sizes_for"]

MOST_SIZES = 4
"""Sizes at which a definition is tuned, hence schedules that its kernel has."""

_CALL_S = 1e-7
"""The least seconds of any call."""

_MOST_CORNERS = 6

_MOST_TERMS = 1 << 31
_MOST_BYTES = 1 << 27
"""Work and tensors of one timed call, at most: tenths of a second, and more than caches hold."""

_BELOW = 0.9
"""The largest size that is tuned, as a share of the greatest."""

Ranges = Mapping[Dim, SizeRange]


@dataclass(frozen=True, eq=False)
class TaskGroup:
    """The tasks of one definition.

    Args:
        dag: The definition.
        tasks: Its tasks by their sizes, smallest first; a definition without dimensions has one.
        between: The definition at sizes between those of *tasks*, at which schedules are timed too.
        range: The sizes of its main dimension (:attr:`~ansorpy.ir.dag.ComputeDAG.main_dim`).
    """

    dag: ComputeDAG
    tasks: Mapping[Task, Sizes]
    between: Mapping[Task, Sizes]
    range: SizeRange | None = None

    @staticmethod
    def of(
        dag: ComputeDAG, task_of: Callable[[ComputeDAG, str], Task], ranges: Ranges | None = None
    ) -> TaskGroup:
        """The tasks of *dag*.

        Args:
            task_of: Makes a task of a definition and a suffix of its name.
            ranges: The sizes of dimensions; of those that are missing, nothing more is known.
        """
        if not dag.dims:
            return TaskGroup(dag, {task_of(dag, ""): {}}, {})
        known = {dim: (ranges or {}).get(dim) or _any_size(dim) for dim in dag.dims}
        known |= {dim: _one_size(known[dim]) for dim in dag.dims if dim not in dag.shape_dims}
        every = (
            _with_elements(dag, sizes_for(dag.dims, known))
            or _with_elements(dag, _corners(dag.dims))[-1:]
        )
        tuned = _distinct(_affordable(dag, sizes) for sizes in every)
        further = [_affordable(dag, sizes) for sizes in sizes_between(dag.dims, every)]
        between = _distinct(s for s in _with_elements(dag, further) if s not in tuned)

        def tasks_at(some: Sequence[Sizes]) -> dict[Task, Sizes]:
            return {task_of(dag_at(dag, sizes), _suffix(sizes)): sizes for sizes in some}

        return TaskGroup(dag, tasks_at(tuned), tasks_at(between), known[dag.main_dim])

    def for_all(self, task: Task) -> Task:
        """*task*, one of :attr:`every`, with the programs that are for all sizes."""
        sizes = tuple((dim.name, fixed(size)) for dim, size in self.every[task].items())
        return replace(task, at=sizes, name=f"{task.name} of any size")

    @property
    def every(self) -> dict[Task, Sizes]:
        """All tasks at which schedules are timed, by their sizes in the main dimension."""
        dim = self.dag.main_dim
        both = {**self.tasks, **self.between}
        return dict(sorted(both.items(), key=lambda item: fixed(item[1][dim])))

    @cached_property
    def least(self) -> tuple[float, ...]:
        """The least seconds that each of :attr:`tasks` can take."""
        return tuple(max(least_seconds(task, task.dag), _CALL_S) for task in self.tasks)

    def weights(self, network_s: Sequence[float]) -> dict[Task, float]:
        """What a call counts at each size, compared to a call of another definition.

        It counts by the share of calls that the size stands for and by how much longer the whole
        network takes at the largest size: then a second saved counts by the share of the network's
        time that it is.  Otherwise, small sizes would hardly be tuned.

        Args:
            network_s: Seconds of the network at each size; those of the definition if it is alone.
        """
        if len(self.tasks) == 1:
            return dict.fromkeys(self.tasks, 1.0)
        columns = zip(self.tasks, self.shares(self.tasks), network_s, strict=True)
        return {task: share * max(network_s) / seconds for task, share, seconds in columns}

    def shares(self, tasks: Mapping[Task, Sizes]) -> list[float]:
        """What share of the calls each of *tasks*, in the order of their sizes, stands for.

        Unless calls were observed, half of it is the same for all: rare sizes matter too.
        """
        assert self.range is not None
        dim = self.dag.main_dim
        found = self.range.weights([fixed(sizes[dim]) for sizes in tasks.values()])
        if self.range.calls:
            return list(found)
        return [share / 2 + 1 / len(found) / 2 for share in found]


def _with_elements(dag: ComputeDAG, some: Sequence[Sizes]) -> list[Sizes]:
    """Those of *some* sizes at which no tensor or reduction of *dag* is empty."""
    axes = [axis for op in dag.computes for axis in (*op.axes, *op.reduce_axes)]
    extents = {axis.extent for axis in axes if not isinstance(axis.extent, int)}
    extents |= {e for op in dag.args for e in op.shape if not isinstance(e, int)}
    return [s for s in some if all(fixed(at(extent, s)) > 0 for extent in extents)]


def _distinct(some: Iterable[Sizes]) -> list[Sizes]:
    found: list[Sizes] = []
    for sizes in some:
        if sizes not in found:
            found.append(sizes)
    return found


def _affordable(dag: ComputeDAG, sizes: Sizes) -> Sizes:
    """*sizes*, or smaller ones at which a call of *dag* can be timed.

    Ranges of several dimensions allow calls at which each is large, which hardly anyone makes.
    Halved are first those dimensions that do not decide which schedule is run.
    """
    main, kept = dag.main_dim, dict(sizes)
    while not _is_affordable(dag, kept):
        halves = {dim: _prime(dim, _near(dim, fixed(kept[dim]) / 2)) for dim in kept}
        lower = [
            dim
            for dim, half in halves.items()
            if half < fixed(kept[dim]) and _with_elements(dag, [{**kept, dim: half}])
        ]
        if not lower:
            break
        others = [dim for dim in lower if dim is not main] or lower
        chosen = max(others, key=lambda dim: fixed(kept[dim]) / max(dim.low, 1))
        kept[chosen] = halves[chosen]
    return kept


def _is_affordable(dag: ComputeDAG, sizes: Sizes) -> bool:
    def count(extents: Iterable[AnyExtent]) -> int:
        return prod(fixed(at(extent, sizes)) for extent in extents)

    terms = sum(count(a.extent for a in (*op.axes, *op.reduce_axes)) for op in dag.computes)
    size = sum(count(op.shape) * op.dtype.bytes for op in (*dag.args, *dag.computes))
    return terms <= _MOST_TERMS and size <= _MOST_BYTES


def _corners(dims: Sequence[Dim]) -> list[Sizes]:
    """Sizes at which each of *dims* is the least or the greatest, for up to six of them."""
    ends = [(dim.low, dim.high) if n < _MOST_CORNERS else (dim.high,) for n, dim in enumerate(dims)]
    return [dict(zip(dims, picked, strict=True)) for picked in product(*ends)]


def _any_size(dim: Dim) -> SizeRange:
    """The sizes of *dim*, of which no call is known."""
    return SizeRange(dim.low, dim.high, dim.step, geometric=True)


def _one_size(sizes: SizeRange) -> SizeRange:
    """The largest one expected of *sizes*, which matter little: only strides depend on them."""
    usual = max((size for size, _ in sizes.calls), default=sizes.high)
    return replace(sizes, calls=((usual, 1),))


def _suffix(sizes: Sizes) -> str:
    return "[" + ", ".join(f"{dim.name}={size}" for dim, size in sizes.items()) + "]"


def sizes_for(dims: Sequence[Dim], ranges: Ranges | None = None) -> list[Sizes]:
    """The sizes that stand for all: observed ones, or geometric steps to below the greatest.

    No tile divides these sizes, nor do tiles just fill them: a schedule that is fast there is fast
    at others, while one found at a multiple of its tiles may waste much of a tile elsewhere.

    >>> n = Dim("n", 1, 512)
    >>> [sizes[n] for sizes in sizes_for([n])]
    [7, 29, 113, 461]
    >>> [sizes[n] for sizes in sizes_for([n], {n: SizeRange(1, 512, calls=((1, 9), (512, 1)))})]
    [1, 512]
    """
    columns = [_column(dim, (ranges or {}).get(dim)) for dim in dims]
    count = max(map(len, columns))
    rows = (
        [column[(n + 1) * len(column) // count - 1] for column in columns] for n in range(count)
    )
    return _distinct(dict(zip(dims, picked, strict=True)) for picked in rows)


def _column(dim: Dim, known: SizeRange | None) -> list[int]:
    """Sizes of *dim* that stand for all, in order."""
    if known is not None and known.calls:
        sizes = [size for size, _ in known.calls]
        reached = list(accumulate(count for _, count in known.calls))
        wanted = (reached[-1] * (n + 1) / MOST_SIZES for n in range(MOST_SIZES))
        picked = {sizes[bisect_left(reached, calls)] for calls in wanted}
        return sorted(picked if len(sizes) > MOST_SIZES else sizes)
    least_share = max(max(dim.low, 1) / max(dim.high, 1), 1 / 4**MOST_SIZES)
    step = least_share ** (1 / MOST_SIZES)
    steps = (_BELOW * dim.high * step**power for power in range(MOST_SIZES - 1, -1, -1))
    return list(dict.fromkeys(_prime(dim, _near(dim, size)) for size in steps))


def _near(dim: Dim, size: float) -> int:
    """The size of *dim* that is nearest to *size*, but not 0 if another one is possible."""
    nearest = round(size / dim.step) * dim.step
    return min(max(nearest, dim.low, dim.step), dim.high)


def _prime(dim: Dim, size: int) -> int:
    """The greatest size up to *size* that is a prime multiple of the step; *size* if none is.

    It is *size*, too, if that is too large to be timed: such primes take long to find.
    """
    if size > _MOST_TERMS:
        return size
    numbers = range(size // dim.step, max(dim.low // dim.step, 2) - 1, -1)
    primes = (n for n in numbers if all(n % k for k in range(2, isqrt(n) + 1)))
    return next(primes, size // dim.step) * dim.step


def sizes_between(dims: Sequence[Dim], tuned: Sequence[Sizes]) -> list[Sizes]:
    """A size below each of *tuned* and above the one before it, odd if possible; the greatest too.

    There are more where most sizes are: one above the last of these, and one below it unless the
    size before is near.

    >>> n = Dim("n", 1, 512)
    >>> [sizes[n] for sizes in sizes_between([n], sizes_for([n]))]
    [5, 19, 71, 181, 287, 375, 512]
    """
    ends = [{dim: max(dim.low, 1) for dim in dims}, *tuned]
    found = [
        {d: _odd(d, (fixed(low[d]) + fixed(high[d])) / 2) for d in dims}
        for low, high in pairwise(ends)
    ]
    *_, below, above = ends
    last = found[-1]
    if any(fixed(last[d]) > 2 * fixed(below[d]) for d in dims):
        found.insert(-1, {d: _odd(d, sqrt(fixed(below[d]) * fixed(last[d]))) for d in dims})
    found.append({d: _odd(d, (fixed(last[d]) + fixed(above[d])) / 2) for d in dims})
    found.append({d: d.high for d in dims})
    return [sizes for n, sizes in enumerate(found) if sizes not in (*tuned, *found[:n])]


def _odd(dim: Dim, size: float) -> int:
    nearest = _near(dim, size)
    return min(nearest | 1, dim.high) if dim.step == 1 else nearest
