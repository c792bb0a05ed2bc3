"""Steps that restructure the loops of one stage: split, fuse, reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Literal, Self, get_args

from ansorpy.errors import ScheduleError
from ansorpy.ir.extents import Extent, Symbolic
from ansorpy.schedule.decisions import Decision, Factors, OneOf, Product, known
from ansorpy.schedule.stage import FuseRelation, Iter, SplitRelation, Stage, Tail
from ansorpy.schedule.steps.base import Number, Step, choice, compute_stage, some
from ansorpy.schedule.tables.size import split_extents

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["FollowFusedSplitStep", "FollowSplitStep", "FuseStep", "ReorderStep", "SplitStep"]


@dataclass(frozen=True)
class SplitStep(Step):
    """Split *iter* into ``len(factors) + 1`` loops; *factors* are the inner ones.

    Law: ``old == (outer * f1 + i1) * f2 + i2 ...``; the outermost extent follows by ceil-div.
    A factor is a number, or open.  Factors that are None are decided together: their domain
    follows from the loop's extent.  A :class:`OneOf` is a choice by itself, whatever the extent:
    the threads of a block, the elements of one load.
    If the factors do not divide, *tail* determines the result: ``guard``, ``cover`` and ``whole``
    skip elements outside, the last with innermost loops of full length; ``shift`` starts the last
    tile early enough to fit; ``even`` has some tiles one element smaller; ``peel`` has one smaller
    tile at the end.
    """

    returns_names = True

    iter: str
    factors: tuple[Number, ...] = field(metadata=choice("{stage}.{iter}/{k}", 1))
    max_innermost: int = 64
    tail: Tail = "guard"
    kind: Literal["split"] = "split"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        it = stage.iter(self.iter)
        some("factor", self.factors, self, state)
        products = self.products(state)
        self._check_open(state, it)
        return split_into(state, self, it, products, self.tail)

    def _check_open(self, state: State, it: Iter) -> None:
        if None not in self.factors:
            return
        if not isinstance(it.extent, int):
            why = "open" if it.extent is None else str(it.extent)
            raise self.error(
                state, f"the loop's own extent is {why}, so its factors have no domain yet",
                loops=[it.name], hint="split the original loop into more parts instead",
            )  # fmt: skip
        if any(isinstance(factor, OneOf) for factor in self.factors):
            raise self.error(
                state,
                "factors that are None cannot be mixed with a OneOf: their extent would be open",
                loops=[it.name], hint="make every open factor None, or every one a OneOf",
            )  # fmt: skip
        if self.max_innermost < 1:
            raise self.error(
                state, f"no factor is at most {self.max_innermost}", loops=[it.name],
                hint="max_innermost is at least 1",
            )  # fmt: skip

    def decisions(self, state: State) -> tuple[Decision, ...]:
        """One for all factors that are None, or one for each choice."""
        extent = state.stage(self.stage).iter(self.iter).extent
        if None not in self.factors or not isinstance(extent, int):
            return super().decisions(state)
        fixed = prod(factor for factor in self.factors if isinstance(factor, int))
        cap = self.max_innermost if self.factors[-1] is None else extent
        tail: Tail = self.tail if extent % fixed == 0 else "guard"
        tail = "cover" if self.tail == "whole" else tail
        domain = Factors(-(-extent // fixed), len(self.open_columns), cap, tail)
        return (Decision(f"{self.stage}.{self.iter}", self.open_columns, domain),)

    def skeleton(self) -> Self:
        return replace(super().skeleton(), max_innermost=0, tail="guard")


@dataclass(frozen=True)
class FollowSplitStep(Step):
    """Split *iter* with the factors of another split (TVM's FollowSplit).

    The factors are its first ``n_split - 1`` inner factors, then the product of the others.
    """

    returns_names = True

    iter: str
    source: tuple[str, str]
    n_split: int
    kind: Literal["follow_split"] = "follow_split"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        source = find_split(state, self.source, self.call())
        factors = source.factors
        if not 1 <= self.n_split <= len(factors):
            raise self.error(
                state,
                f"n_split is {self.n_split}, but the split of {self.source[1]} in stage "
                f'"{self.source[0]}" has {len(factors)} inner factors',
            )
        last: Product = tuple(f for p in factors[self.n_split - 1 :] for f in p)
        followed = (*factors[: self.n_split - 1], last)
        return split_into(state, self, stage.iter(self.iter), followed, source.tail)


@dataclass(frozen=True)
class FollowFusedSplitStep(Step):
    """Split *iter* in two by factors of several splits (TVM's FollowFusedSplit, factor mode).

    The inner factor is the product of the *level*-th inner factors (counted from 0) of *sources*.
    """

    returns_names = True

    iter: str
    sources: tuple[tuple[str, str], ...]
    level: int
    kind: Literal["follow_fused_split"] = "follow_fused_split"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        some("split to follow", self.sources, self, state)
        factor: Product = ()
        for source in self.sources:
            factors = find_split(state, source, self.call()).factors
            if not 0 <= self.level < len(factors):
                raise self.error(
                    state,
                    f"level {self.level} is out of range: the split of {source} has {len(factors)} "
                    "inner factors",
                )
            factor += factors[self.level]
        return split_into(state, self, stage.iter(self.iter), (factor,), "guard")


@dataclass(frozen=True)
class FuseStep(Step):
    """Fuse neighbouring loops into one; the name joins theirs as TVM prints it (``i@j@``).

    With *together*, the last two are taken in strips of at most so many iterations of the first of
    them, so that nearby iterations of the fused loop share what either of the two reads.
    Source: the order of blocks in CUTLASS and Triton.  Differs: strips divide the loop.
    """

    returns_names = True

    iters: tuple[str, ...]
    together: int = 1
    kind: Literal["fuse"] = "fuse"

    @property
    def fused(self) -> str:
        """The name of the loop it makes."""
        return "".join(name if name.endswith("@") else f"{name}@" for name in self.iters)

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        fused = [stage.iter(name) for name in self.iters]
        if len(fused) < 2:
            raise self._refused(state, "fusing needs two loops or more", "name them all")
        if self.together < 1:
            raise self._refused(state, f"strips of {self.together} iterations are none",
                                "together is at least 1, which takes no strips")  # fmt: skip
        first = stage.index(self.iters[0])
        if [it.name for it in stage.iters[first : first + len(fused)]] != list(self.iters):
            raise self._refused(state, "only neighbouring loops, in order, can be fused",
                                "reorder them next to each other first")  # fmt: skip
        kinds = {it.kind for it in fused}
        if len(kinds) > 1:
            raise self._refused(
                state, "space and reduce iterators cannot share one loop",
                "fuse the space iterators first, or rfactor the reduction to turn it into space",
            )  # fmt: skip
        if state.host_iters(stage).intersection(self.iters[:-1]):
            raise self._refused(state, "another stage is computed between these loops",
                                "move it with compute_at or compute_root first")  # fmt: skip
        refuse_unless_plain(state, self, self.iters)
        child = Iter(self.fused, kinds.pop(), _known_product(fused))
        iters = (*stage.iters[:first], child, *stage.iters[first + len(fused) :])
        relation = FuseRelation(self.iters, child.name, self.together)
        state = state.replace_stage(
            replace(stage, iters=iters, relations=(*stage.relations, relation))
        )
        return state.move_attached(stage.name, self.iters[-1], child.name)

    def _refused(self, state: State, message: str, hint: str) -> ScheduleError:
        return self.error(state, message, loops=self.iters, hint=hint)


@dataclass(frozen=True)
class ReorderStep(Step):
    """Permute the named loops among the positions they hold."""

    iters: tuple[str, ...]
    kind: Literal["reorder"] = "reorder"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if len(set(self.iters)) != len(self.iters):
            raise self.error(state, "a loop is named twice")
        wanted = iter([stage.iter(name) for name in self.iters])
        named = set(self.iters)
        return state.replace_stage(
            stage.with_iters(tuple(next(wanted) if it.name in named else it for it in stage.iters))
        )


def find_split(state: State, source: tuple[str, str], call: str) -> SplitRelation:
    """The split of loop ``source[1]`` in stage ``source[0]``."""
    for relation in state.stage(source[0]).relations:
        if isinstance(relation, SplitRelation) and relation.parent == source[1]:
            return relation
    raise ScheduleError(
        f'stage "{source[0]}" has no split of "{source[1]}" to follow',
        step=call, stage=source[0], program=state.text(source[0]),
    )  # fmt: skip


def split_into(
    state: State, step: Step, it: Iter, factors: tuple[Product, ...], tail: Tail
) -> State:
    """:func:`split_loop` on *step*'s stage; stages computed at *it* move to the innermost part.

    Raises:
        ScheduleError: The loop is already annotated, or cannot have this *tail*, or none is.
    """
    _check_tail(state, step, it, tail)
    refuse_unless_plain(state, step, [it.name])
    stage = split_loop(state.stage(step.stage), it, factors, tail)
    return state.replace_stage(stage).move_attached(
        stage.name, it.name, f"{it.name}.{len(factors)}"
    )


def split_loop(stage: Stage, it: Iter, factors: tuple[Product, ...], tail: Tail) -> Stage:
    """*stage* with *it* replaced by an outer loop and one per factor: ``it.0 .. it.n``."""
    extents = _extents(it.extent, [(known(product) or 0) for product in factors], tail)
    children = tuple(Iter(f"{it.name}.{k}", it.kind, extent) for k, extent in enumerate(extents))
    at = stage.index(it.name)
    relation = SplitRelation(it.name, tuple(c.name for c in children), factors, tail)
    return replace(
        stage,
        iters=(*stage.iters[:at], *children, *stage.iters[at + 1 :]),
        relations=(*stage.relations, relation),
    )


def _check_tail(state: State, step: Step, it: Iter, tail: Tail) -> None:
    stage = state.stage(step.stage)
    if tail not in get_args(Tail):
        raise ScheduleError(
            f"{tail!r} is not a tail", step=step.call(), stage=stage.name,
            hint=f"it is one of {', '.join(get_args(Tail))}",
        )  # fmt: skip
    if tail not in ("guard", "cover", "whole") and it.name not in {
        a.name for a in stage.compute.axes
    }:
        raise step.error(
            state, f'only an original space axis can be split with tail="{tail}"',
            loops=[it.name], hint='use tail="guard" for other loops',
        )  # fmt: skip
    bodies = [r for r in stage.relations if isinstance(r, SplitRelation) and r.two_bodies]
    if tail in ("even", "peel") and bodies:
        raise step.error(
            state,
            f'the tiles of "{bodies[0].parent}" have two bodies; only one axis per stage may',
            loops=[it.name], hint='use tail="shift" for the others',
        )  # fmt: skip


def refuse_unless_plain(state: State, step: Step, names: Sequence[str]) -> None:
    """Refuse a *step* that would replace a loop that an earlier step has annotated."""
    for name in names:
        how = state.stage(step.stage).how(name)
        if how is not None:
            raise step.error(
                state, f'loop "{name}" is {how}, but the loops that replace it would not be',
                loops=[name], hint="split and fuse loops first, then annotate the new ones",
            )  # fmt: skip


def _extents(extent: Extent | None, factors: list[int], tail: Tail) -> tuple[Extent | None, ...]:
    """Extents of the new loops; None if an inner factor (0 here) is still open."""
    if extent is not None and all(factors):
        parts = split_extents(extent, factors, whole=tail == "whole")
        return tuple(part for part in parts if isinstance(part, int | Symbolic))
    return (None, *(factor or None for factor in factors))


def _known_product(iters: list[Iter]) -> Extent | None:
    total: Extent = 1
    for it in iters:
        if it.extent is None:
            return None
        total = total * it.extent
    return total
