"""The context in which a program's nests are lowered: names, loops, buffers, packings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ansorpy.errors import ScheduleError
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.expr import Binary, BinaryOp, Expr, Load, Var, as_expr, is_zero
from ansorpy.ir.extents import Extent, Symbolic, extreme, least
from ansorpy.ir.loops import BLOCK_THREADS, Buffer, ForKind, ForKinds
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import SizeOp
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import Span
from ansorpy.schedule.lowering.gpu.overlays import overlays
from ansorpy.schedule.lowering.packing import Packing, plan_packing

__all__ = ["Index", "LoweringContext", "minus"]

Index = tuple[Expr, ...]
LoopKey = tuple[str, str]
"""Stage and loop; the two bodies of a split have different variables for the same loop."""


class LoweringContext:
    """The variables, loops and buffers that are in scope at the statement being built."""

    def __init__(self, bounds: Bounds):
        self.bounds = bounds
        self.state = bounds.state
        self.buffers: dict[str, Buffer] = {}
        self.packings: dict[tuple[str, str], Packing] = {}
        self.overlays = overlays(bounds.state)
        self._origins: dict[str, Index] = {}
        self._loops: dict[LoopKey, tuple[Var, Extent]] = {}
        self._threads: dict[Var, tuple[ForKind, int]] = {}
        """The loops over threads of a GPU block around the statement: index and extent."""
        self._packed_loops: dict[tuple[str, str], dict[Var, LoopKey]] = {}
        self.in_second_body = False
        """True while one of the two bodies of a split is built; such splits cannot be nested."""
        self._parallel = 0
        self._definitions: dict[Var, Expr] = {}
        self._ranges: dict[Var, tuple[Extent, Extent]] = {}
        self._names: dict[str, int] = {}

    def fresh(self, name: str) -> Var:
        """A new variable; a name already used in this program gets a numeric suffix."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return Var(name if count == 0 else f"{name}_{count}")

    def counter(self, name: str, extent: int) -> Var:
        """A new variable that counts the iterations of a loop in an instruction."""
        var = self.fresh(name)
        self._ranges[var] = (0, extent - 1)
        return var

    @contextmanager
    def loop(self, key: LoopKey, var: Var, extent: Extent, kind: ForKind) -> Iterator[None]:
        """Within the context, statements are inside this loop; *key* is its stage and name."""
        self._loops[key] = (var, extent)
        self._ranges[var] = (0, extent - 1)
        self._parallel += kind is ForKind.PARALLEL
        if kind in BLOCK_THREADS:
            self._threads[var] = (kind, fixed(extent))
        yield
        self._parallel -= kind is ForKind.PARALLEL
        self._threads.pop(var, None)
        del self._loops[key]

    @contextmanager
    def body(
        self,
        second: Mapping[LoopKey, Sequence[int]],
        ranges: Mapping[Var, tuple[Extent, Extent]],
    ) -> Iterator[None]:
        """Within the context, one of the two bodies of a split is built.

        *second* has the extents of the second body's tiles; it is empty for the first body.
        """
        bounds, known = self.bounds, {var: self._ranges[var] for var in ranges}
        if second:
            self.bounds = Bounds(self.state, bounds.values, second)
        self._ranges.update(ranges)
        self.in_second_body = True
        yield
        self.in_second_body = False
        self._ranges.update(known)
        self.bounds = bounds

    def define(self, var: Var, value: Expr, last: Extent) -> None:
        """Record that *var* is bound to *value*, which is between 0 and *last*."""
        self._definitions[var] = value
        self._ranges[var] = (0, last)

    @property
    def in_parallel(self) -> bool:
        """True inside a parallel loop."""
        return self._parallel > 0

    def of_first(self, kinds: ForKinds, value: Expr) -> Expr:
        """*value* in the first iteration of the enclosing thread loops of these *kinds*."""
        first = {var: as_expr(0) for var, (kind, _) in self._threads.items() if kind in kinds}
        return substitute(substitute(value, self._definitions), first)

    def threads_left(self, kind: ForKind) -> int | None:
        """How many threads run the statement along index *kind*; None if it is not bound."""
        return min((n for k, n in self._threads.values() if k is kind), default=None)

    def threads_around(self) -> Mapping[Var, tuple[ForKind, int]]:
        """The enclosing loops over threads of a block: index and extent of each."""
        return self._threads

    def origin(self, name: str) -> Index:
        """Where the box of *name*'s buffer starts, by dimension (zeros for a whole tensor)."""
        known = self._origins.get(name)
        return known if known is not None else tuple(as_expr(0) for _ in self.buffers[name].shape)

    def place(self, name: str, region: Sequence[Span], starts: Index) -> list[tuple[Var, Expr]]:
        """Set the origin of an attached stage's box; returns the variables to bind.

        The box is moved inside the tensor; a masked box is moved only if it starts before 0.
        """
        lets: list[tuple[Var, Expr]] = []
        origins: list[Expr] = []
        for d, (span, start, whole) in enumerate(
            zip(region, starts, self.bounds.ends(name), strict=True)
        ):
            assert isinstance(span.extent, int | Symbolic)
            low, high = self.range_of(start)
            if self.bounds.masked(name):
                origins.append(self._not_before(f"{name}.{d}", start, lets))
                continue
            if least(low) >= 0 and least(whole - span.extent - high) >= 0:
                origins.append(start)
                continue
            if whole == span.extent:
                origins.append(as_expr(0))
                continue
            var = self.fresh(f"{name}.{d}")
            last = as_expr(whole - span.extent)
            inside = Binary(BinaryOp.MAX, Binary(BinaryOp.MIN, start, last), as_expr(0))
            lets.append((var, inside))
            self.define(var, substitute(inside, self._definitions), whole - span.extent)
            origins.append(var)
        self._origins[name] = tuple(origins)
        return lets

    def _not_before(self, name: str, start: Expr, lets: list[tuple[Var, Expr]]) -> Expr:
        """*start*, or 0 where it is negative."""
        low, high = self.range_of(start)
        if least(low) >= 0:
            return start
        var, inside = self.fresh(name), Binary(BinaryOp.MAX, start, as_expr(0))
        lets.append((var, inside))
        self.define(var, substitute(inside, self._definitions), extreme(SizeOp.MAX, high, 0))
        return var

    def range_of(self, value: Expr) -> tuple[Extent, Extent]:
        """The least and greatest value that *value* can have in the enclosing loops."""
        return extents_of(value, self._ranges)

    def load(self, stage: str, load: Load) -> Expr:
        """*load* of a tensor as a load from the buffer that holds the tensor, or a box of it."""
        name = load.source.name
        if name in self.state.stage(stage).packed:
            return self._packed(stage, name, load.indices)
        buffer, origins = self.buffers[name], self.origin(name)
        inside = zip(load.indices, origins, strict=True)
        at = tuple(self.simple(index - origin) for index, origin in inside)
        return Load(buffer, at).astype(load.dtype)

    def simple(self, index: Expr) -> Expr:
        """*index* with common terms cancelled, and simplified using the ranges of the loops."""
        form = linear(index)
        affine = all(isinstance(atom, Var) for atom in form.terms)
        return form.to_expr() if affine else simplify(form.to_expr(), self._ranges)

    def _packed(self, stage: str, name: str, indices: Index) -> Expr:
        key = (stage, name)
        indices = tuple(linear(substitute(index, self._definitions)).to_expr() for index in indices)
        if key not in self.packings:
            loops = list(self._loops.values())
            self.packings[key] = plan_packing(stage, self.buffers[name], indices, loops)
            self._packed_loops[key] = {var: at for at, (var, _) in self._loops.items()}
        packing, named = self.packings[key], self._packed_loops[key]
        here = {
            var: self._loops[named[var]][0] if named[var] in self._loops else as_expr(0)
            for var, _ in packing.loops
        }
        planned = [substitute(index, here) for index in packing.indices]
        if not all(is_zero(minus(a, b)) for a, b in zip(indices, planned, strict=True)):
            raise ScheduleError(
                f'"{stage}" reads "{name}" in two ways, so one packed order cannot serve both',
                stage=stage, hint="do not pack this constant",
            )  # fmt: skip
        return Load(packing.buffer, tuple(here.values()))


def minus(index: Expr, origin: Expr) -> Expr:
    """``index - origin`` with common terms cancelled."""
    return linear(index - origin).to_expr()
