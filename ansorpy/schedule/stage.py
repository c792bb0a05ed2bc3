"""Stages: one operator's loops in a partial program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, TypeAlias

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind, Expr
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.fragments import Fragment
from ansorpy.ir.loops import ALONE, BLOCK_THREADS, WARP_LANES, ForKind, ForKinds, Scope
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor
from ansorpy.schedule.decisions import Product

__all__ = [
    "Attach", "Carried", "FuseRelation", "Iter", "KernelStyle", "Marked", "Relation", "Rescaled",
    "SplitRelation", "Stage", "Tail", "initial_stage",
]  # fmt: skip


Tail: TypeAlias = Literal["guard", "cover", "whole", "shift", "even", "peel"]


@dataclass(frozen=True)
class Iter:
    """One loop of a stage.  ``extent`` is None while a decision it depends on is open.

    Extents are those of the whole operator; a stage computed inside another stage's loop runs over
    a smaller box, which :mod:`ansorpy.schedule.bounds.inference` derives.
    """

    name: str
    kind: AxisKind
    extent: AnyExtent | None
    annotation: ForKind = ForKind.SERIAL


@dataclass(frozen=True)
class SplitRelation:
    """``parent == ((c0 * f1 + c1) * f2 + c2) ...``; ``factors`` are those of ``children[1:]``.

    ``tail`` says what happens where the tile ``f1 * f2 ...`` does not divide the parent:

    - ``guard``: iterations beyond the parent are skipped.
    - ``cover``: as ``guard``, but open factors need not divide.
    - ``whole``: as ``cover``, and the innermost loop keeps its length even if the axis is
      shorter: a warp has all its lanes.
    - ``shift``: the last tile starts early enough to fit and repeats some work,
      ``parent == min(c0 * tile, extent - tile) + (c1 * f2 + c2) ...``.
    - ``even``: tiles of ``tile`` and ``tile - 1``, with a body each.
    - ``peel``: full tiles and one for the remainder, with a body each.
    """

    parent: str
    children: tuple[str, ...]
    factors: tuple[Product, ...]
    tail: Tail = "guard"

    @property
    def covers(self) -> bool:
        """True where the loops of each tile run in full, even beyond the axis."""
        return self.tail in ("cover", "whole")

    @property
    def two_bodies(self) -> bool:
        """True where the smaller tiles have a body of their own."""
        return self.tail in ("even", "peel")


@dataclass(frozen=True)
class FuseRelation:
    """``child == (p0 * extent(p1) + p1) * extent(p2) + p2 ...``.

    With ``together`` above 1, the last two loops are taken in strips: all iterations of the last
    one for as many of the other as divide its extent, at most ``together``, which vary fastest.
    """

    parents: tuple[str, ...]
    child: str
    together: int = 1


Relation: TypeAlias = SplitRelation | FuseRelation


@dataclass(frozen=True)
class Attach:
    """Computed inside *stage*'s loop *iter*, once for each of its iterations."""

    stage: str
    iter: str


@dataclass(frozen=True)
class Marked:
    """Marked loops: the first *count* of *iters* run in parallel, or the last ones as a vector."""

    iters: tuple[str, ...]
    count: Product


@dataclass(frozen=True)
class Carried:
    """Continued in every iteration of loop *iter* of reduction *host*, not computed all at once.

    Each of *loops*, the outermost reduce loops of the carried stage, runs as the loop of *host*
    that it is paired with.  Within an iteration, readers see the value so far.
    """

    host: str
    iter: str
    loops: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rescaled:
    """A sum of terms relative to stage *top* that is multiplied whenever that value changes.

    The factor is ``exp((before - after) * scale)``, with *top* read at *indices* (over the axes of
    the sum).
    """

    top: str
    indices: tuple[Expr, ...]
    scale: float


class KernelStyle(Enum):
    """How the threads of a GPU kernel share its work.

    A sketch rule decides it and records it on the stage launched as the kernel.
    """

    PLAIN = "plain"
    """Each thread computes single elements, or short vectors, of the last stage."""
    THREAD_TILES = "thread_tiles"
    """Blocks, virtual threads and threads are levels of tiles of a product."""
    TENSOR_CORES = "tensor_cores"
    """Warps or warpgroups sum fragments in their registers by matrix instructions."""
    ROWS = "rows"
    """A block computes all stages for some rows, with threads in rows and lanes."""
    ROWS_IN_WARPS = "rows_in_warps"
    """Each warp computes all stages for some rows, in fragments in its registers."""
    CROSS_THREAD_REDUCTION = "cross_thread_reduction"
    """The threads of a block share each sum."""


@dataclass(frozen=True)
class Stage:
    """One operator in a :class:`~ansorpy.schedule.state.State`: its loops, outermost first."""

    op: ComputeOp | PlaceholderOp
    iters: tuple[Iter, ...]
    relations: tuple[Relation, ...] = ()
    inlined: bool = False
    attach: Attach | None = None
    scope: Scope | None = None
    parallel: Marked | None = None
    vectorize: Marked | None = None
    max_unroll: Product = (0,)
    """Loops are unrolled while the body has at most this many statements."""
    packed: tuple[str, ...] = ()
    """The constants that are rearranged at bind time into the order in which the loops read."""
    tensorized: tuple[str, str] | None = None
    """The loop that an instruction replaces, with those inside it, and the instruction's name."""
    pad: Product = (0,)
    """Unused elements after each row of the stage's tile in shared memory."""
    pipeline: tuple[str, Product] | None = None
    """The loop whose shared tiles are copied ahead, and how many instances of each tile exist."""
    bulk: Product = (0,)
    """0 if all threads copy the stage's tile, otherwise one thread has the copy engine copy it.

    The number is that of neighbouring blocks that share the copy if it is the same for them.
    """
    lanes: str | None = None
    """The reduce loop that is a vector with a partial sum per lane."""
    fragment: Fragment | None = None
    """How the stage's elements are distributed over the registers of a warp's lanes."""
    swizzle: int = 0
    """The most bytes in a segment of a swizzled row in shared memory; 0 if not swizzled."""
    carried: Carried | None = None
    """The loop of another reduction in which the stage is summed up, if not in its own."""
    rescaled: Rescaled | None = None
    """The carried maximum to which the terms of the stage's sum are relative."""
    is_write_cache: bool = False
    """True for the stage that a cache_write made."""
    kernel_style: KernelStyle = KernelStyle.PLAIN
    """How threads share the work, for a stage that is launched as a GPU kernel."""

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def is_placeholder(self) -> bool:
        return isinstance(self.op, PlaceholderOp)

    @property
    def compute(self) -> ComputeOp:
        """The operator, which must be a compute."""
        assert isinstance(self.op, ComputeOp), self.op.name
        return self.op

    def iter(self, name: str) -> Iter:
        """The current loop called *name*; raises :class:`ScheduleError` naming all loops."""
        for it in self.iters:
            if it.name == name:
                return it
        raise ScheduleError(
            f'stage "{self.name}" has no loop "{name}"',
            hint=f"its loops are {', '.join(it.name for it in self.iters) or 'none'}",
        )

    def index(self, name: str) -> int:
        return self.iters.index(self.iter(name))

    @property
    def space_iters(self) -> tuple[Iter, ...]:
        """The current space loops, outermost first."""
        return tuple(it for it in self.iters if it.kind is AxisKind.SPACE)

    @property
    def reduce_iters(self) -> tuple[Iter, ...]:
        """The current reduce loops, outermost first."""
        return tuple(it for it in self.iters if it.kind is AxisKind.REDUCE)

    def with_iters(self, iters: tuple[Iter, ...]) -> Stage:
        return replace(self, iters=iters)

    def with_op(self, op: Tensor) -> Stage:
        assert isinstance(op, ComputeOp | PlaceholderOp)
        return replace(self, op=op)

    def annotate(self, name: str, annotation: ForKind) -> Stage:
        wanted = self.iter(name)
        return self.with_iters(
            tuple(replace(it, annotation=annotation) if it is wanted else it for it in self.iters)
        )

    def how(self, name: str) -> str | None:
        """How a step made loop *name* run, such as "parallel"; None for a plain loop."""
        annotation = self.iter(name).annotation
        if annotation is not ForKind.SERIAL:
            unrolled = annotation is ForKind.UNROLLED
            return annotation.value if unrolled else f"bound to {annotation.value}"
        named = {
            "parallel": self.parallel.iters if self.parallel else (),
            "vectorized": self.vectorize.iters if self.vectorize else (),
            "the lanes of a reduction": (self.lanes,),
            "tensorized": self.tensorized[:1] if self.tensorized else (),
            "pipelined": self.pipeline[:1] if self.pipeline else (),
        }
        return next((how for how, loops in named.items() if name in loops), None)

    @property
    def is_arranged(self) -> bool:
        """True once a step has changed the loops, their order or how they run.

        The stage's compute location and the memory that keeps its result do not count.
        """
        placed = replace(self, attach=None, scope=None, is_write_cache=False)
        return placed != initial_stage(self.op)

    @property
    def shared_by(self) -> ForKinds:
        """Kinds of the loops around it whose iterations fill and read its memory together."""
        if self.scope is Scope.WARP:
            return WARP_LANES
        return BLOCK_THREADS if self.scope is Scope.SHARED else ALONE

    @property
    def root_extents(self) -> Mapping[str, AnyExtent]:
        """Extent of every axis of the operator, space axes first."""
        if not isinstance(self.op, ComputeOp):
            return {}
        return {axis.name: axis.extent for axis in (*self.op.axes, *self.op.reduce_axes)}


def initial_stage(op: Tensor) -> Stage:
    """The stage of *op* with one loop per axis: space axes, then reduce axes."""
    if isinstance(op, PlaceholderOp):
        return Stage(op, ())
    assert isinstance(op, ComputeOp), op.name
    return Stage(op, tuple(Iter(a.name, a.kind, a.extent) for a in (*op.axes, *op.reduce_axes)))
