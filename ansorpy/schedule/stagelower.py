"""One stage's loops as statements, with the stages computed inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod

from ansorpy.errors import ScheduleError
from ansorpy.ir.affine import linear
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import (
    AxisKind,
    Binary,
    BinaryOp,
    Compare,
    Expr,
    Load,
    Reduce,
    Var,
    as_expr,
    walk,
)
from ansorpy.ir.interval import bounds as interval
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ansorpy.ir.rewrite import substitute
from ansorpy.ir.simplify import simplify
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.axes import axis_exprs, is_ragged, overshoot
from ansorpy.schedule.bounds import Bounds, Span
from ansorpy.schedule.dagedit import map_loads
from ansorpy.schedule.loopkinds import loop_kinds
from ansorpy.schedule.packing import Packing, plan_packing
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.tensorize import as_instruction

__all__ = ["StageLowering"]

Index = tuple[Expr, ...]


class StageLowering:
    """Turns stages into statements; remembers the buffers and packings they need."""

    def __init__(self, bounds: Bounds):
        self.bounds = bounds
        self.state = bounds.state
        self.buffers: dict[str, Buffer] = {}
        self.packings: dict[tuple[str, str], Packing] = {}
        self._origins: dict[str, Index] = {}
        self._loops: list[tuple[Var, int]] = []
        self._parallel = 0
        self._definitions: dict[Var, Expr] = {}
        self._ranges: dict[Var, tuple[int, int]] = {}
        self._names: dict[str, int] = {}

    def statement(self, name: str) -> Stmt:
        """The whole nest of stage *name* (its buffer and origin are already known)."""
        return _Nest(self, name).build()

    # Shared by the nests

    def fresh(self, name: str) -> Var:
        """A variable; a name already used in this program gets a number behind it."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return Var(name if count == 0 else f"{name}_{count}")

    @contextmanager
    def loop(self, var: Var, extent: int, kind: ForKind) -> Iterator[None]:
        """Everything inside runs in this loop."""
        self._loops.append((var, extent))
        self._ranges[var] = (0, extent - 1)
        self._parallel += kind is ForKind.PARALLEL
        yield
        self._parallel -= kind is ForKind.PARALLEL
        self._loops.pop()

    def define(self, var: Var, value: Expr, last: int) -> None:
        """Note that *var*, at most *last*, is bound to *value*."""
        self._definitions[var] = value
        self._ranges[var] = (0, last)

    @property
    def in_parallel(self) -> bool:
        """True inside a parallel loop."""
        return self._parallel > 0

    def origin(self, name: str) -> Index:
        """Where the box of *name*'s buffer starts, by dimension (zeros for a whole tensor)."""
        known = self._origins.get(name)
        return known if known is not None else tuple(as_expr(0) for _ in self.buffers[name].shape)

    def place(self, name: str, region: Sequence[Span], starts: Index) -> list[tuple[Var, Expr]]:
        """Set the origin of an attached stage, kept inside the tensor; returns what to bind."""
        shape = self.state.stage(name).op.shape
        lets: list[tuple[Var, Expr]] = []
        origins: list[Expr] = []
        for d, (span, start, whole) in enumerate(zip(region, starts, shape, strict=True)):
            assert isinstance(span.extent, int)
            low, high = interval(start, self._ranges)
            if low >= 0 and high + span.extent <= whole:
                origins.append(start)
                continue
            var = self.fresh(f"{name}.{d}")
            last = as_expr(whole - span.extent)
            inside = Binary(BinaryOp.MAX, Binary(BinaryOp.MIN, start, last), as_expr(0))
            lets.append((var, inside))
            self._ranges[var] = (0, whole - span.extent)
            origins.append(var)
        self._origins[name] = tuple(origins)
        return lets

    def load(self, stage: str, load: Load) -> Expr:
        """*load* of a tensor as a load of the buffer that holds (the box of) it."""
        name = load.source.name
        if name in self.state.stage(stage).packed:
            return self._packed(stage, name, load.indices)
        buffer, origins = self.buffers[name], self.origin(name)
        inside = zip(load.indices, origins, strict=True)
        return Load(buffer, tuple(self.simple(index - origin) for index, origin in inside))

    def simple(self, index: Expr) -> Expr:
        """*index* with what cancels gone, quotients and remainders by the loops' ranges too."""
        form = linear(index)
        affine = all(isinstance(atom, Var) for atom in form.terms)
        return form.to_expr() if affine else simplify(form.to_expr(), self._ranges)

    def _packed(self, stage: str, name: str, indices: Index) -> Expr:
        key = (stage, name)
        indices = tuple(linear(substitute(index, self._definitions)).to_expr() for index in indices)
        if key not in self.packings:
            self.packings[key] = plan_packing(stage, self.buffers[name], indices, self._loops)
        packing = self.packings[key]
        if [linear(i) for i in indices] != [linear(i) for i in packing.indices]:
            raise ScheduleError(
                f'"{stage}" reads "{name}" in two ways, so one packed order cannot serve both',
                stage=stage, hint="do not pack this constant",
            )  # fmt: skip
        return Load(packing.buffer, tuple(var for var, _ in packing.loops))


def minus(index: Expr, origin: Expr) -> Expr:
    """``index - origin`` with what they share cancelled."""
    return linear(index - origin).to_expr()


class _Nest:
    """The statements of one stage while they are being built."""

    def __init__(self, outer: StageLowering, name: str):
        self.outer = outer
        self.state = outer.state
        self.name = name
        self.stage: Stage = outer.state.stage(name)
        self.op: ComputeOp = outer.bounds.op(name)
        self.extents: dict[str, int] = {}
        for key, size in outer.bounds.extents(name).items():
            assert isinstance(size, int)
            self.extents[key] = size
        self.attached = outer.state.attached(name)
        hosts = {s.attach.iter for s in self.attached if s.attach is not None}
        self.kinds = loop_kinds(self.stage, self.extents, hosts, nested=outer.in_parallel)
        self.buffer = outer.buffers[name]
        self.leaves: dict[str, Expr] = {}
        self.starts: dict[str, Expr] = {}
        self.pending: list[tuple[Var, Expr]] = []
        self._refuse_unsafe_shifts()
        self._demote_guarded_vectors()

    def build(self) -> Stmt:
        if not self.stage.iters:
            return Seq((*self._initial(0), self._store()))
        return self._from(0)

    # Loops

    def _from(self, level: int) -> Stmt:
        """The statement of loops number *level* and inward."""
        if level == len(self.stage.iters):
            return self._store()
        it = self.stage.iters[level]
        first_reduce = it.kind is AxisKind.REDUCE and not any(
            i.kind is AxisKind.REDUCE for i in self.stage.iters[:level]
        )
        if self.stage.tensorized is not None and self.stage.tensorized[0] == it.name:
            return self._instruction(level)
        before = self._initial(level) if first_reduce else []
        made = self._loop(level, lambda: self._inside(level))
        return Seq((*before, made)) if before else made

    def _loop(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        it = self.stage.iters[level]
        extent = self.extents[it.name]
        if extent == 1 and not _is_bound(self.kinds[it.name]):
            self.leaves[it.name] = as_expr(0)
            return self._with_starts(level, body)
        var = self.outer.fresh(it.name)
        self.leaves[it.name] = var
        with self.outer.loop(var, extent, self.kinds[it.name]):
            self._start_tiles(it.name, var)
            return For(var, extent, self.kinds[it.name], self._with_starts(level, body))

    def _start_tiles(self, name: str, var: Var) -> None:
        """Have the start of the tiles that loop *name* counts bound, where the last is shifted."""
        for relation in self.stage.relations:
            if not is_ragged(relation, self.extents) or name != relation.children[0]:
                continue
            tile = prod(self.extents[c] for c in relation.children[1:])
            last = self.extents[relation.parent] - tile
            start = self.outer.fresh(f"{relation.parent}.start")
            value = Binary(BinaryOp.MIN, var * tile, as_expr(last))
            self.starts[relation.parent] = start
            self.pending.append((start, value))
            self.outer.define(start, value, last)

    def _with_starts(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        """*body* with the pending tile starts bound, once no loop of a parallel nest follows."""
        following = self.stage.iters[level + 1 : level + 2]
        if any(self.kinds[it.name] is ForKind.PARALLEL for it in following):
            return body()
        starts, self.pending = self.pending, []
        stmt = body()
        for var, value in reversed(starts):
            stmt = Let(var, value, stmt)
        return stmt

    def _inside(self, level: int) -> Stmt:
        """The body of loop *level*: the stages computed there, then the rest of this one."""
        name = self.stage.iters[level].name
        here = [s for s in self.attached if s.attach is not None and s.attach.iter == name]
        producers = [self._producer(stage, level) for stage in here]
        stmt = self._from(level + 1)
        for buffer, lets, made in reversed(producers):
            parts: tuple[Stmt, ...] = (made, stmt)
            if buffer.scope is Scope.SHARED:
                parts = (Barrier(Scope.SHARED), made, Barrier(Scope.SHARED), stmt)
            stmt = Alloc(buffer, Seq(parts))
            for var, value in reversed(lets):
                stmt = Let(var, value, stmt)
        return stmt

    def _producer(self, stage: Stage, level: int) -> tuple[Buffer, list[tuple[Var, Expr]], Stmt]:
        region = self.outer.bounds.region(stage.name, self.name, level)
        values = self._axis_values(level)
        starts = tuple(self.outer.simple(_start(span, values)) for span in region)
        lets = self.outer.place(stage.name, region, starts)
        shape = tuple(int(span.extent) for span in region if isinstance(span.extent, int))
        buffer = Buffer(stage.name, shape, stage.op.dtype, self._scope(stage, level))
        self.outer.buffers[stage.name] = buffer
        return buffer, lets, self.outer.statement(stage.name)

    def _scope(self, stage: Stage, level: int) -> Scope:
        """LOCAL unless threads inside this level share the buffer."""
        if stage.scope is Scope.SHARED:
            return Scope.SHARED
        inner = [self.kinds[it.name] for it in self.stage.iters[level + 1 :]]
        below = ForKind.PARALLEL in inner or stage.parallel is not None
        shared = below and not self.outer.in_parallel
        return Scope.WORKSPACE if shared or stage.scope is Scope.WORKSPACE else Scope.LOCAL

    # Indices

    def _axis_values(self, level: int | None = None) -> dict[str, Expr]:
        """Every axis in terms of the loops; with *level*, where the box inside it starts."""
        leaves = dict(self.leaves)
        if level is not None:
            leaves.update({it.name: as_expr(0) for it in self.stage.iters[level + 1 :]})
        values = axis_exprs(self.stage, leaves, self.extents, self.starts)
        origins = self.outer.origin(self.name)
        return {
            a.name: linear(values[a.name] + origin).to_expr()
            for a, origin in zip(self.op.axes, origins, strict=True)
        } | {a.name: linear(values[a.name]).to_expr() for a in self.op.reduce_axes}

    def _write_index(self) -> Index:
        values, origins = self._axis_values(), self.outer.origin(self.name)
        return tuple(minus(values[a.name], o) for a, o in zip(self.op.axes, origins, strict=True))

    # Statements

    def _store(self) -> Stmt:
        body = self.op.body
        source = body.source if isinstance(body, Reduce) else body
        values = self._axis_values()
        axes = (*self.op.axes, *self.op.reduce_axes)
        mapping: dict[Var, Expr] = {a: values[a.name] for a in axes}
        value = map_loads(substitute(source, mapping), lambda x: self.outer.load(self.name, x))
        kind = body.kind if isinstance(body, Reduce) else None
        stmt: Stmt = Store(self.buffer, self._write_index(), value, kind)
        return self._guarded(stmt)

    def _initial(self, level: int) -> list[Stmt]:
        """Set the box of this stage inside loop *level* to the reduction's identity."""
        body = self.op.body
        if not isinstance(body, Reduce):
            return []
        space = [
            n for n in range(level, len(self.stage.iters))
            if self.stage.iters[n].kind is not AxisKind.REDUCE
        ]  # fmt: skip
        saved = dict(self.leaves)
        self.leaves.update(
            {it.name: as_expr(0) for it in self.stage.iters[level:] if it.kind is AxisKind.REDUCE}
        )
        identity = as_expr(body.kind.identity(body.dtype), body.dtype)

        def nest(remaining: list[int]) -> Stmt:
            if remaining:
                return self._loop(remaining[0], lambda: nest(remaining[1:]))
            return self._guarded(Store(self.buffer, self._write_index(), identity, None))

        stmt = nest(space)
        self.leaves = saved
        return [stmt]

    def _instruction(self, level: int) -> Stmt:
        """The loops from *level* inward as the one instruction the schedule names."""
        assert self.stage.tensorized is not None
        inner = self.stage.iters[level:]
        hosts = {s.attach.iter for s in self.attached if s.attach is not None}
        if hosts & {it.name for it in inner}:
            raise ScheduleError(
                "another stage is computed inside the loops of the instruction",
                stage=self.name, program=self.state.text(self.name),
            )  # fmt: skip
        outer_reduces = any(i.kind is AxisKind.REDUCE for i in self.stage.iters[:level])
        before = [] if outer_reduces else self._initial(level)
        loops = {it.name: self.outer.fresh(it.name) for it in inner}
        self.leaves.update(loops)
        store = self._store()
        if not isinstance(store, Store):
            raise ScheduleError(
                "the loops of an instruction must divide their axes",
                stage=self.name, program=self.state.text(self.name),
            )  # fmt: skip
        sized = [(it.kind, (loops[it.name], self.extents[it.name])) for it in inner]
        made = as_instruction(
            self.stage.tensorized[1], store,
            [x for kind, x in sized if kind is not AxisKind.REDUCE],
            [x for kind, x in sized if kind is AxisKind.REDUCE],
        )  # fmt: skip
        return Seq((*before, made)) if before else made

    # Splits that do not divide

    def _guards(self, leaves: Mapping[str, Expr]) -> list[Expr]:
        local = axis_exprs(self.stage, leaves, self.extents, self.starts)
        guards = overshoot(self.stage, local, self.extents)
        return [g for g in guards if any(isinstance(e, Var) for e in walk(g))]

    def _guarded(self, stmt: Stmt) -> Stmt:
        guards = self._guards(self.leaves)
        return If(all_of(*guards), stmt, None) if guards else stmt

    def _refuse_unsafe_shifts(self) -> None:
        """A shifted last tile repeats iterations: no sum may be half done when it does."""
        reduce = [n for n, it in enumerate(self.stage.iters) if it.kind is AxisKind.REDUCE]
        if not reduce:
            return
        counting = {
            r.children[0]
            for r in self.stage.relations
            if isinstance(r, SplitRelation) and is_ragged(r, self.extents)
        }
        outside = {it.name for it in self.stage.iters[: reduce[0]]}
        together = {n for n, kind in self.kinds.items() if kind is ForKind.PARALLEL}
        if not counting <= outside - together:
            raise ScheduleError(
                "a shifted tail repeats part of a sum that another thread or iteration adds to",
                stage=self.name, program=self.state.text(self.name, counting),
                hint="cache_write the stage and shift the copy, or split by factors that divide",
            )  # fmt: skip

    def _demote_guarded_vectors(self) -> None:
        """A vector loop whose lanes differ in a guard runs serially: lanes share one branch."""
        names = {it.name: Var(it.name) for it in self.stage.iters}
        guards = self._guards(names)
        guarded = {v for g in guards if isinstance(g, Compare) for v in walk(g.a)}
        for name, var in names.items():
            if self.kinds[name] is ForKind.VECTORIZED and var in guarded:
                self.kinds[name] = ForKind.SERIAL


def _start(span: Span, values: Mapping[str, Expr]) -> Expr:
    if span.origin is None:
        return as_expr(0)
    start: Expr = as_expr(span.origin.offset)
    for (axis, divisor), coefficient in span.origin.terms:
        start = start + quotient(values[axis], divisor) * coefficient
    return start


def quotient(value: Expr, divisor: int) -> Expr:
    """``value // divisor``; dividing by 1 is left out."""
    return value if divisor == 1 else value // as_expr(divisor)


def _is_bound(kind: ForKind) -> bool:
    """GPU indices keep their loop even at extent 1: the launch needs it."""
    return kind.value.startswith(("blockIdx", "threadIdx", "vthread"))
