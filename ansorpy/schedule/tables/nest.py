"""The loop nest of a state, with sizes, for feature extraction and the analytic model.

It describes the program before tails, vectors and unrolling are expanded: for every stage, the
loops around its statement, outermost first, and for every tensor that it accesses, the stride of
each loop in each dimension.  If built on columns, one nest describes a whole population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansorpy.arrays import Ints
from ansorpy.ir.analysis.affine import axes_in, index_terms, linear
from ansorpy.ir.analysis.conditions import choices, share_held, skip_condition
from ansorpy.ir.expr import Axis, AxisKind, Binary, BinaryOp, Const, Expr, Reduce
from ansorpy.ir.fragments import fragment_lanes
from ansorpy.ir.loops import ForKind
from ansorpy.ir.strides import Strides
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import ZERO, Origin
from ansorpy.schedule.lowering.loop_kinds import loop_kinds
from ansorpy.schedule.shared_memory import stage_bytes, tile_instances
from ansorpy.schedule.stage import Attach, FuseRelation, SplitRelation, Stage
from ansorpy.schedule.tables.size import Size

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Leaf", "LeafAccess", "Loop", "Nest", "Settings", "build_nest", "moving", "nest_of"]


@dataclass(frozen=True)
class Loop:
    """A loop around a statement; masks (:mod:`ansorpy.schedule.lowering.loop_kinds`) are 0 or 1."""

    stage: str
    name: str
    kind: AxisKind
    extent: Size
    parallel: Size
    vector: Size
    unroll: Size
    index: ForKind = ForKind.SERIAL
    """The GPU index to which the loop is bound; SERIAL if there is none."""


@dataclass(frozen=True)
class LeafAccess:
    """One access of a statement to a tensor.

    ``coefs[d][l]`` is how far dimension ``d`` moves per iteration of loop ``l``.  Loops outside
    the buffer's allocation (the first ``alloc_depth``) have 0, unless they are threads that share
    the buffer.  ``exact`` is False if an index is not affine: its loops have coefficient 0, and the
    whole dimension counts as accessed.  ``strides`` is set for a tensor that is not dense; ``pad``
    is the number of unused elements after each row of a tile.
    """

    buffer: str
    shape: tuple[Size, ...]
    elem_bytes: int
    coefs: tuple[tuple[Size, ...], ...]
    alloc_depth: int
    is_constant: bool
    is_packed: bool
    is_output: bool
    exact: tuple[bool, ...]
    moving: tuple[tuple[int, ...], ...]
    """For each loop, the dimensions in which it may move, including all that are not exact."""
    strides: Strides | None = None
    pad: Size = 0
    team: int = 0
    """Number of lanes whose registers together hold the buffer (a warp or warpgroup); 0: memory."""


@dataclass(frozen=True)
class Settings:
    """The distinct settings of the decisions on which a statement depends."""

    first: Ints
    """For each setting, the first candidate that has it."""
    of: Ints
    """For each candidate, the number of its setting."""


@dataclass(frozen=True)
class Leaf:
    """A stage's statement: its loops, reads (one entry per index tuple) and write.

    Its columns have one size per setting, or per candidate if ``settings`` is None.
    """

    stage: str
    op: ComputeOp
    loops: tuple[Loop, ...]
    accesses: tuple[LeafAccess, ...]
    write: LeafAccess
    body: Expr
    max_unroll: Size
    own_from: int
    """Position in ``loops`` of the stage's own outermost loop; those before enclose the stage."""
    changes_guard: tuple[Size, ...] = ()
    """For each loop, whether the condition of the sum's terms depends on it; () if there is none.
    """
    held: float = 1.0
    """The fraction of iterations in which that condition holds; 1 if there is none."""
    changes_choice: tuple[Size, ...] = ()
    """For each loop, whether a choice's condition that loads nothing depends on it; () if there is
    none."""
    settings: Settings | None = None
    instances: Size = 1
    """Number of instances of the tile that exist at once; above 1 if it is copied ahead."""
    shared_bytes: Size = 0
    """Bytes of shared memory that the stage takes in a GPU block."""
    bulk: Size = 0
    """1 if the copy engine fills the stage's tile, 0 if threads do."""


@dataclass(frozen=True)
class Nest:
    """All statements of a state, producers first."""

    leaves: tuple[Leaf, ...]


def build_nest(state: State, values: Mapping[str, Size]) -> Nest:
    """The loop nest of *state* under *values* (one entry for every open column)."""
    return nest_of(Bounds(state, values))


def nest_of(bounds: Bounds) -> Nest:
    """The loop nest of the state of *bounds* under their values."""
    return Nest(tuple(_Builder(bounds).leaves()))


class _Builder:
    def __init__(self, bounds: Bounds):
        self.bounds = bounds
        self.state = bounds.state
        self._loops: dict[str, tuple[Loop, ...]] = {}
        self._strides: dict[str, dict[str, dict[tuple[str, str], Size]]] = {}

    def leaves(self) -> list[Leaf]:
        skip = self.state.constant_stages
        return [self._leaf(name) for name in self.bounds.inlined_dag.ops if name not in skip]

    def _leaf(self, name: str) -> Leaf:
        stage, op = self.state.stage(name), self.bounds.op(name)
        loops = self.loops(name)
        reads = tuple(
            self._access(name, read.tensor, indices)
            for read in self.bounds.inlined_dag.reads[name]
            for indices in read.indices
        )
        changes_guard, held = self._condition(name, op, loops)
        return Leaf(
            name, op, loops, reads, self._access(name, stage.op, op.axes), op.body,
            self.bounds.number(stage.max_unroll), len(self._outer(stage)), changes_guard, held,
            changes_choice=self._changing(name, choices(op.body), loops),
            instances=tile_instances(self.bounds, stage),
            shared_bytes=stage_bytes(self.bounds, stage),
            bulk=self.bounds.number(stage.bulk),
        )  # fmt: skip

    def _condition(
        self, name: str, op: ComputeOp, loops: Sequence[Loop]
    ) -> tuple[tuple[Size, ...], float]:
        condition = skip_condition(op.body) if isinstance(op.body, Reduce) else None
        if condition is None:
            return (), 1.0
        return self._changing(name, [condition], loops), share_held(condition)

    def _changing(
        self, name: str, conditions: Sequence[Expr], loops: Sequence[Loop]
    ) -> tuple[Size, ...]:
        """For each loop, whether one of *conditions* depends on it; () for no condition."""
        if not conditions:
            return ()
        moved = {
            loop
            for condition in conditions
            for axis in axes_in(condition)
            for loop in self.strides(name)[axis.name]
        }
        return tuple(int((x.stage, x.name) in moved) for x in loops)

    # Loops

    def loops(self, name: str) -> tuple[Loop, ...]:
        """All loops around the statement of stage *name*, outermost first."""
        if name not in self._loops:
            stage = self.state.stage(name)
            self._loops[name] = (*self._outer(stage), *self._own(stage))
        return self._loops[name]

    def _outer(self, stage: Stage) -> tuple[Loop, ...]:
        if stage.attach is None:
            return ()
        host, kept = stage.attach.stage, self._around(stage.attach)
        loops = self.loops(host)
        found = tuple(x for x in loops if x.stage != host or x.name in kept)
        # The stage's own loops divide the tile among the threads that fill it together.
        together = stage.shared_by
        return tuple(replace(x, extent=1) if x.index in together else x for x in found)

    def _around(self, at: Attach) -> frozenset[str]:
        """The loops of the stage of *at* down to its loop, taken apart where they were fused."""
        host = self.state.stage(at.stage)
        outer = host.iters[: host.index(at.iter) + 1]
        return frozenset(part for it in outer for part in components(host, it.name))

    def _own(self, stage: Stage) -> list[Loop]:
        extents, kinds = self.bounds.extents(stage.name), loop_kinds(self.bounds, stage.name)
        return [
            Loop(
                stage.name, part, it.kind, extents[part], kinds[it.name].parallel,
                kinds[it.name].vector, kinds[it.name].unroll, kinds[it.name].index,
            )
            for it in stage.iters
            for part in components(stage, it.name)
        ]  # fmt: skip

    # Accesses

    def strides(self, name: str) -> dict[str, dict[tuple[str, str], Size]]:
        """Axis -> (stage, loop) -> how far the axis moves per iteration of that loop."""
        if name in self._strides:
            return self._strides[name]
        stage = self.state.stage(name)
        op = stage.compute
        leaves = {part for it in stage.iters for part in components(stage, it.name)}
        strides: dict[str, dict[tuple[str, str], Size]] = {}
        for axis in (*op.axes, *op.reduce_axes):
            own = self._descend(stage, axis.name)
            strides[axis.name] = {(name, k): v for k, v in own.items() if k in leaves}
        if stage.attach is not None:
            for axis, span in zip(op.axes, self.bounds.region(name), strict=True):
                strides[axis.name].update(self._origin(span.origin or ZERO, stage.attach))
        self._strides[name] = strides
        return strides

    def _descend(self, stage: Stage, axis: str) -> dict[str, Size]:
        """Stride of *axis* and of every loop made from it."""
        strides: dict[str, Size] = {axis: 1}
        for relation in stage.relations:
            if isinstance(relation, SplitRelation) and relation.parent in strides:
                step = strides[relation.parent]
                for child, stride in self.bounds.strides(relation).items():
                    strides[child] = step * stride
            elif isinstance(relation, FuseRelation) and relation.parents[-1] in strides:
                strides[relation.child] = strides[relation.parents[-1]]
        return strides

    def _origin(self, origin: Origin, at: Attach) -> dict[tuple[str, str], Size]:
        """How far a box's start moves per iteration of each loop down to that of *at*."""
        kept = self._around(at)
        strides: dict[tuple[str, str], Size] = {}
        for (axis, divisor), c in origin.terms:
            for (stage, loop), s in self.strides(at.stage)[axis].items():
                if stage != at.stage or loop in kept:
                    strides[stage, loop] = strides.get((stage, loop), 0) + s // divisor * c
        return strides

    def _access(self, name: str, tensor: Tensor, indices: tuple[Expr, ...]) -> LeafAccess:
        loops = self.loops(name)
        source = self.state.stage(tensor.name)
        depth = len(self._outer(source))
        roots = self.bounds.roots(tensor.name) if not source.is_placeholder else {}
        shape = tuple(roots.values())[: len(tensor.shape)] if roots else tensor.shape
        rows = [self._index(name, index) for index in indices]
        together = source.shared_by
        coefs = tuple(
            tuple(
                0 if n < depth and x.index not in together
                else (terms or {}).get((x.stage, x.name), 0)
                for n, x in enumerate(loops)
            )
            for terms in rows
        )  # fmt: skip
        exact = tuple(terms is not None for terms in rows)
        return LeafAccess(
            tensor.name, shape, tensor.dtype.bytes, coefs, depth,
            tensor.name in self.state.constant_stages,
            tensor.name in self.state.stage(name).packed,
            self.state.current_dag.is_output(tensor), exact, moving(coefs, exact, len(loops)),
            self.state.current_dag.strides.get(tensor.name), self.bounds.number(source.pad),
            0 if source.fragment is None else fragment_lanes(source.fragment),
        )  # fmt: skip

    def _index(self, name: str, index: Expr) -> dict[tuple[str, str], Size] | None:
        """Stride of every loop in *index*; None unless it sums axes, quotients and remainders.

        Quotients and remainders of such sums by numbers are treated as if no loop crossed a
        multiple of the divisor.
        """
        op = self.bounds.op(name)
        found = index_terms(index, (*op.axes, *op.reduce_axes))
        strides: dict[tuple[str, str], Size] = {}
        terms = linear(index).terms if found is None else found[0]
        for atom, c in terms.items():
            part = self._part(name, atom)
            if part is None:
                return None
            for loop, s in part.items():
                strides[loop] = strides.get(loop, 0) + s * c
        return strides

    def _part(self, name: str, atom: Expr) -> Mapping[tuple[str, str], Size] | None:
        """Strides of an axis, or of the quotient or remainder of a sum by a number."""
        if isinstance(atom, Axis):
            return self.strides(name)[atom.name]
        if not (isinstance(atom, Binary) and isinstance(atom.b, Const)):
            return None
        strides = self._index(name, atom.a)
        divisor = int(atom.b.value)
        if strides is None or divisor < 1:
            return None
        quotients = {loop: s // divisor for loop, s in strides.items()}
        if atom.op is BinaryOp.FLOORDIV:
            return quotients
        if atom.op is BinaryOp.FLOORMOD:
            return {loop: s - quotients[loop] * divisor for loop, s in strides.items()}
        return None


def moving(
    coefs: Sequence[Sequence[Size]], exact: Sequence[bool], loops: int
) -> tuple[tuple[int, ...], ...]:
    """For each of *loops* loops, the dimensions in which the coefficients let it move."""
    return tuple(
        tuple(d for d, row in enumerate(coefs) if not (exact[d] and _is_zero(row[loop])))
        for loop in range(loops)
    )


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def components(stage: Stage, name: str) -> tuple[str, ...]:
    """Loop *name*, or the loops from which it was fused."""
    for relation in stage.relations:
        if isinstance(relation, FuseRelation) and relation.child == name:
            return tuple(part for p in relation.parents for part in components(stage, p))
    return (name,)
