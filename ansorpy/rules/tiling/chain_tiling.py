"""Loops and compute locations of a chain's stages: result blocks and product register tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ansorpy.ir.analysis.access import Access, accesses, reads
from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.expr import Axis
from ansorpy.ir.loops import ForKind
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.matching.branches import branch_axes, chosen_by_remainder, periods
from ansorpy.rules.matching.chain import Chain, reused_axes
from ansorpy.rules.matching.packed import has_columns_of_its_own
from ansorpy.rules.matching.relations import consumers
from ansorpy.rules.predicates import has_data_reuse, reads_along
from ansorpy.rules.sketch.add_operand_copy import moving_load, with_operand_copy
from ansorpy.rules.tiling.levels import multi_level_tile
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import Part
from ansorpy.schedule.decisions import VECTOR, columns_of
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State

__all__ = ["ChainTiling"]


LEAST_ROWS = 4
"""Number of rows of a register tile that reuse loaded vectors enough to keep multipliers busy."""


@dataclass
class Block:
    """The loops of the last stage, by level."""

    outer: list[Iter] = field(default_factory=list)
    middle: list[Iter] = field(default_factory=list)
    tile: list[Iter] = field(default_factory=list)
    pieces: list[Iter] = field(default_factory=list)
    vector: list[Iter] = field(default_factory=list)


class ChainTiling:
    """Builds one sketch of *chain*.

    Every space axis of the last stage is split into block, middle and tile and, if the stage uses
    ``axis // m`` and ``axis % m``, into pieces of size ``m``:

        for a.0, b.0, ...:         # block
          (the stages before the product, unless *whole_prologue*)
          for v.0:                 # block of the axis that the product vectorizes
            (product)
            for a.1, b.1, v.1:
              for a.2, b.2, v.2:
                (stages after the product)
                for a.3, b.3, v.3: result

    A stage whose reader selects between formulas that fold is computed at the reader's innermost
    tile, unless that would compute an element twice.
    """

    max_stride = 2

    def __init__(self, chain: Chain, max_innermost: int, whole_prologue: bool):
        self.chain = chain
        self.max_innermost = max_innermost
        self.whole_prologue = whole_prologue
        self.block = Block()
        self._state = chain.state
        self.vector_axis = self._vector_axis()
        self.axis_of: dict[str, str] = {}

    def state(self) -> State:
        """The sketch."""
        self._arrange_constants()
        self._tile_last()
        product_at = self.block.outer[-1]
        apart = [it for it in self.block.outer if self._axis(it) != self.vector_axis]
        before_at = apart[-1] if apart else product_at
        for name in reversed(self.chain.after):
            self._place_after(name, product_at)
        self._place(self.chain.product, product_at)
        for name in reversed(self.chain.before):
            self._place_before(name, before_at)
        return self._state

    def _op(self, name: str) -> ComputeOp:
        """What the loops of a stage compute, with its inlined producers."""
        return self._state.inlined_dag.ops[name]

    # The last stage

    def _tile_last(self) -> None:
        name, op = self.chain.last, self._op(self.chain.last)
        apart, unrolled = periods(op), chosen_by_remainder(op)
        whole = self._whole_axes()
        for axis in op.axes:
            if axis.name in whole:
                self._keep_last(axis)
            elif axis.extent > 1:
                self._split_last(axis, apart.get(axis.name, 1))
        pieces = sorted(self.block.pieces, key=lambda it: self._axis(it) in unrolled)
        self._state = self._state.reorder(name, [
            *(self._state.stage(name).iter(a.name) for a in op.axes if a.extent == 1),
            *self._outer_order(), *self.block.middle, *self.block.tile, *pieces,
            *self.block.vector,
        ])  # fmt: skip
        for it in pieces:
            if self._axis(it) in unrolled:
                self._state = self._state.unroll(name, it)

    def _split_last(self, axis: Axis, period: int) -> None:
        block, name = self.block, self.chain.last
        is_vector = axis.name == self.vector_axis
        inner: tuple[int | None, ...] = (None, None)
        if period > 1:
            inner = (*inner, period)
        elif is_vector:
            inner = (*inner, None)
        self._state, loops = self._state.split(
            name, axis.name, inner, max_innermost=self.max_innermost,
            tail=self._last_tail(axis, is_vector, period),
        )  # fmt: skip
        self.axis_of.update((it.name, axis.name) for it in loops)
        block.outer.append(loops[0])
        block.middle.append(loops[1])
        block.tile.append(loops[2])
        if len(loops) > 3:
            (block.vector if is_vector else block.pieces).append(loops[3])

    def _whole_axes(self) -> frozenset[str]:
        """Axes without blocks of several elements, if the last stage packs several stages.

        Those are its columns and the axes along which the product re-reads nothing.
        """
        if not has_columns_of_its_own(self.chain.state.stage(self.chain.last).compute):
            return frozenset()
        long = {axis.name for axis in self._op(self.chain.last).axes if axis.extent > 1}
        reused = reused_axes(self._state, self.chain.last, self.chain.product)
        return frozenset(long - reused | {self.vector_axis})

    def _keep_last(self, axis: Axis) -> None:
        """Let *axis* be a loop over blocks, or if it is the vector axis, cut it to vectors only."""
        name = self.chain.last
        if axis.name != self.vector_axis:
            self.block.outer.append(self._state.stage(name).iter(axis.name))
            return
        self._state, (outer, vector) = self._state.split(
            name, axis.name, (None,), max_innermost=self.max_innermost, tail=_tail(axis.extent)
        )
        self.block.tile.append(outer)
        self.block.vector.append(vector)

    def _last_tail(self, axis: Axis, is_vector: bool, period: int) -> Literal["guard", "shift"]:
        """The tail mode for an axis of the last stage; shifting would repeat part of a sum."""
        if self._op(self.chain.last).reduce_axes:
            return "guard"
        if is_vector:
            return _tail(axis.extent)
        return "guard" if period > 1 or _divides_well(axis.extent) else "shift"

    def _outer_order(self) -> list[Iter]:
        """The block loops; that of the vector axis is outermost with a whole prologue, else last.

        The prologue does not depend on the vector axis.
        """
        along = [it for it in self.block.outer if self._axis(it) == self.vector_axis]
        others = [it for it in self.block.outer if it not in along]
        order = [*along, *others] if self.whole_prologue else [*others, *along]
        self.block.outer = order
        return order

    def _axis(self, it: Iter) -> str:
        return self.axis_of.get(it.name, it.name)

    def _vector_axis(self) -> str:
        """The axis of the last stage that corresponds to the product's last axis."""
        return self._op(self.chain.last).axes[-1].name

    # Members

    def _place(self, name: str, at: Iter) -> None:
        """Compute *name* at a block loop, and tile it if it is a product."""
        self._state = self._state.compute_at(name, self.chain.last, at)
        if self._is_product(name):
            self._tile_product(name)
        else:
            self._arrange(name, None)

    def _is_product(self, name: str) -> bool:
        return has_data_reuse(self.chain.state, self.chain.state.stage(name))

    def _place_before(self, name: str, at: Iter) -> None:
        if self._place_at_reader(name):
            return
        if self.whole_prologue and self._is_product(name):
            self._state = multi_level_tile(self._state, name, "SSRSRS", self.max_innermost)
        elif self.whole_prologue:
            self._arrange(name, None)
        else:
            self._place(name, at)

    def _place_after(self, name: str, at: Iter) -> None:
        if not self._place_at_reader(name):
            self._place(name, at)

    def _place_at_reader(self, name: str) -> bool:
        """Compute *name* at its :meth:`_pointwise_reader`, if it has one."""
        host = self._pointwise_reader(name)
        if host is None:
            return False
        self._state = self._state.compute_at(name, *host)
        self._arrange(name, 0)
        return True

    def _tile_product(self, name: str) -> None:
        """Order loops as space, reduction, register tile; axes of the result follow its tiles."""
        stage, follows = self._state.stage(name), self._followed(name)
        outer: list[Iter] = []
        rows: list[Iter] = []
        tile: list[Iter] = []
        for axis in stage.compute.axes:
            if axis.extent == 1:
                outer.append(stage.iter(axis.name))
                continue
            part = follows.get(axis.name)
            is_last = axis is stage.compute.axes[-1]
            if part is not None and part == Part(self.vector_axis):
                source = (self.chain.last, part.axis)
                self._state, loops = self._state.follow_split(name, axis.name, source, 2)
                outer += loops[:2]
                tile.append(loops[2])
            elif part is not None:
                source = (self.chain.last, part.axis)
                self._state, loops = self._state.follow_fused_split(name, axis.name, [source], 1)
                rows.append(loops[0])
                tile.append(loops[1])
            elif is_last:
                self._state, loops = self._state.split(
                    name, axis.name, (None,), max_innermost=self.max_innermost,
                    tail=_tail(axis.extent),
                )  # fmt: skip
                outer.append(loops[0])
                tile.append(loops[1])
            else:
                outer.append(stage.iter(axis.name))
        self._state = self._state.reorder(name, [*outer, *rows, *stage.reduce_iters, *tile])
        self._copy_transposed(name)

    def _copy_transposed(self, name: str) -> None:
        """Copy inputs from which the product's vector loop would otherwise gather.

        The copy's location is drawn later: the root, or a loop inside which the copy is re-read.
        """
        for producer in self._state.current_dag.reads(self._state.stage(name).op):
            stage = self._state.stage(producer.name)
            given = stage.is_placeholder and producer not in self._state.current_dag.constant_ops
            reader = self._state.stage(name)
            load = moving_load(stage, reader) if given else None
            if load is not None and load.dimension != producer.ndim - 1:
                self._state = with_operand_copy(self._state, stage, reader)

    def _followed(self, name: str) -> dict[str, Part]:
        """Axes of *name* whose region starts at a block of the result, or at its quotient.

        Axes that correspond to a reduce axis of the last stage have no block to follow.
        """
        state, blocks = self._state, set(self.axis_of.values())
        columns = dict.fromkeys(columns_of(state.decisions), 1)
        spans = Bounds(state, columns).region(name)
        found: dict[str, Part] = {}
        for axis, span in zip(state.stage(name).compute.axes, spans, strict=True):
            terms = () if span.origin is None else span.origin.terms
            if len(terms) == 1 and terms[0][1] == 1 and terms[0][0].axis in blocks:
                found[axis.name] = terms[0][0]
        return found

    def _pointwise_reader(self, name: str) -> tuple[str, Iter] | None:
        """The loop of the only reader inside which no element of *name* is computed twice.

        None unless the reader selects between formulas that fold: only then are all uses of an
        element in one small body.  Also None if the reader has no loop around that body.
        """
        state = self._state
        readers = consumers(state, state.stage(name))
        if len(readers) != 1 or readers[0].compute.reduce_axes:
            return None
        reader = readers[0]
        op = self._op(reader.name)
        if reader.name == self.chain.last:
            kept = {a.name for a in op.axes if a.name not in periods(op)}
            folds = bool(chosen_by_remainder(op)) or bool(branch_axes(op))
            host: Iter | None = self.block.tile[-1]
        else:
            inside = branch_axes(op) | _passed_axes(state, op)
            kept = {a.name for a in op.axes} - inside
            folds = bool(inside)
            host = _last_outside(reader, inside)
        if host is None or not folds or not _is_pointwise(op, state.stage(name), kept, periods(op)):
            return None
        return reader.name, host

    def _arrange(self, name: str, vector: int | None) -> None:
        """Order the axes: others, those that select in a producer, unrolled ones, and the vector.

        Axes are unrolled so that selects fold.  *vector* is the inner factor of the last axis: None
        leaves it open, 0 leaves the axis unsplit.  A reduction that does not read along its last
        axis (row sums) is left as it is.
        """
        stage, op = self._state.stage(name), self._op(name)
        if not op.axes:
            return
        if op.reduce_axes and not reads_along(self._state, stage, op.axes[-1], self.max_stride):
            return
        folding, passed = branch_axes(op), _passed_axes(self._state, op)
        *space, last = stage.iters[: len(op.axes)]
        if vector != 0 and last.name not in folding | passed:
            self._state, (rest, last) = self._state.split(
                name, last, (vector,), max_innermost=self.max_innermost,
                tail="guard" if op.reduce_axes else _tail(op.axes[-1].extent),
            )  # fmt: skip
            space.append(rest)
        self._state = self._state.reorder(name, [
            *(it for it in space if it.name not in folding | passed),
            *stage.reduce_iters,
            *(it for it in space if it.name in passed - folding),
            *(it for it in space if it.name in folding),
            last,
        ])  # fmt: skip
        for it in stage.iters:
            if it.name in folding:
                self._state = self._state.unroll(name, it)

    def _arrange_constants(self) -> None:
        """Schedule the stages that run at bind time and have selects that fold."""
        for stage in self._state.stages:
            bound = stage.name in self._state.constant_stages and isinstance(stage.op, ComputeOp)
            if not bound or stage.inlined or not branch_axes(self._op(stage.name)):
                continue
            extent = stage.compute.axes[-1].extent
            lanes = max(n for n in range(1, self.max_innermost + 1) if extent % n == 0)
            self._arrange(stage.name, lanes)
            iters = self._state.stage(stage.name).iters
            if iters[-1].annotation is ForKind.SERIAL:
                self._state = self._state.vectorize(stage.name, [iters[-1]])
            if iters[0].annotation is ForKind.SERIAL and len(iters) > 1:
                self._state = self._state.parallel(stage.name, [iters[0]])


def _tail(extent: int) -> Literal["guard", "shift"]:
    """The tail mode for a vector axis: exact if vectors divide it, else the last is shifted."""
    return "guard" if extent % VECTOR == 0 else "shift"


def _divides_well(extent: int) -> bool:
    """Whether an exact tile of enough rows exists, or the axis is no longer than such a tile."""
    return extent <= LEAST_ROWS or any(extent % n == 0 for n in range(LEAST_ROWS, VECTOR + 1))


def _passed_axes(state: State, op: ComputeOp) -> frozenset[str]:
    """Axes that index a producer along axes by which it selects between formulas."""
    found: set[str] = set()
    for access in accesses(op):
        producer = access.tensor
        if not isinstance(producer, ComputeOp) or producer in state.current_dag.constant_ops:
            continue
        chosen = branch_axes(state.inlined_dag.ops[producer.name])
        for axis, index in zip(producer.axes, access.indices, strict=True):
            if axis.name in chosen:
                found |= {axis.name for axis in axes_in(index)}
    return frozenset(found)


def _last_outside(stage: Stage, inside: frozenset[str]) -> Iter | None:
    """The innermost loop not in *inside*; the last loop, the vector loop, counts as inside."""
    outside = [it for it in stage.iters[:-1] if it.name not in inside]
    return outside[-1] if outside else None


def _is_pointwise(op: ComputeOp, read: Stage, kept: set[str], apart: dict[str, int]) -> bool:
    """Whether each index of *read* in *op* is a *kept* axis, its quotient, or free of both.

    Indices free of both are constants, folded axes and remainders.
    """
    return all(
        _is_plain(access, d, kept, apart)
        for access in reads(op, read.op)
        for d in range(len(access.indices))
    )


def _is_plain(access: Access, d: int, kept: set[str], apart: dict[str, int]) -> bool:
    names = {axis.name for axis in axes_in(access.indices[d])}
    if not names & (kept | apart.keys()):
        return True
    terms = access.terms[d]
    if terms is None:
        return len(names) == 1 and names <= apart.keys()
    return len(terms[0]) == 1 and terms[1] == 0 and set(terms[0].values()) == {1}
