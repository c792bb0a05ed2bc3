"""Lower one stage's loop nest, including the stages computed inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import (
    AxisKind,
    Binary,
    BinaryOp,
    Expr,
    Load,
    Reduce,
    Select,
    Var,
    as_expr,
)
from ansorpy.ir.extents import Extent, Symbolic, most
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import (
    BLOCK_THREADS,
    Alloc,
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
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed
from ansorpy.schedule.bounds.axes import is_ragged, number
from ansorpy.schedule.bounds.spans import start_of
from ansorpy.schedule.lowering.context import LoweringContext
from ansorpy.schedule.lowering.dag_edit import map_loads
from ansorpy.schedule.lowering.float32_sums import adds_halves
from ansorpy.schedule.lowering.gpu.asynchronous import grouped
from ansorpy.schedule.lowering.gpu.lane_loops import require_whole_fragments
from ansorpy.schedule.lowering.gpu.pipeline import Producer, bound_to, padded_strides, pipelined
from ansorpy.schedule.lowering.gpu.program import synchronised
from ansorpy.schedule.lowering.gpu.thread_sums import ThreadSums, shared_reduce_loop
from ansorpy.schedule.lowering.lane_sums import LaneSums
from ansorpy.schedule.lowering.partial_sums import PartialSums
from ansorpy.schedule.lowering.skipping import condition_to_add, repeated
from ansorpy.schedule.lowering.tails import refuse_unsafe_shifts, second_body
from ansorpy.schedule.lowering.tensorize import as_instruction
from ansorpy.schedule.shared_memory import copies_ahead, is_in_shared
from ansorpy.schedule.stage import Attach, SplitRelation, Stage

__all__ = ["StageLowering"]


class StageLowering(LoweringContext):
    """Lowers stages to statements and keeps the buffers and packings they need."""

    def statement(self, name: str) -> Stmt:
        """The whole loop nest of stage *name*, whose buffer and origin must be known."""
        return _StageNest(self, name).build()


class _StageNest(PartialSums):
    """The loop nest of one stage while it is being built."""

    def __init__(self, outer: StageLowering, name: str):
        super().__init__(outer, name)
        self.outer: StageLowering = outer
        self.pending: list[tuple[Var, Expr]] = []
        self.tile: tuple[Var, Var] | None = None
        """Index and start of the tile with two bodies, until the bodies are built."""
        self.across = shared_reduce_loop(self.state, self.stage, self.kinds, outer.threads_around())
        self.lanes_in_use: Extent | None = None
        self.carries = [s for s in self.state.stages if s.carried and s.carried.host == name]
        self.second = second_body(self.stage, self.extents, self.kinds)
        self.sum_level = self._sum_level()
        refuse_unsafe_shifts(self.state, self.stage, self.extents, self.kinds)

    def build(self) -> Stmt:
        if number(self.stage.bulk):
            return self._box()
        if not self.stage.iters:
            return Seq((*self._initial(0), self._store()))
        return self._from(0) if self.stage.carried is None else Seq(tuple(self._initial(0)))

    # Loops

    def _sum_level(self) -> int | None:
        """Number of the loop before which the sum is initialised; None without reduce loops.

        It is the outermost reduce loop with more than one iteration, or the innermost if there is
        none, so that a result is cleared right before it is summed, not in a separate pass.
        Asynchronous instructions add to the result until they are waited for, so for them it is the
        outermost reduce loop.
        """
        reduce = [n for n, it in enumerate(self.stage.iters) if it.kind is AxisKind.REDUCE]
        if self.stage.tensorized is not None and intrinsic(self.stage.tensorized[1]).asynchronous:
            return reduce[0]
        if self.stage.carried is not None or self.carries:
            return reduce[0]
        return next((n for n in reduce if self._repeats(n)), reduce[-1] if reduce else None)

    def _repeats(self, level: int) -> bool:
        name = self.stage.iters[level].name
        is_peeled = self.peeled is not None and name == self.peeled.children[0]
        return self.extents[name] != 1 or is_peeled or self.kinds[name].is_bound

    def _from(self, level: int) -> Stmt:
        """Lower loop number *level* and all loops inside it."""
        if level == len(self.stage.iters):
            return self._store()
        it = self.stage.iters[level]
        first_reduce = level == self.sum_level
        if self.stage.tensorized is not None and self.stage.tensorized[0] == it.name:
            return self._instruction(level)
        if first_reduce and self.stage.lanes is not None:
            return self._in_lanes(level)
        if first_reduce and self.across is not None:
            return self._across_threads(level, self.across)
        if first_reduce and self._needs_float32(level):
            return self._in_float32(level)
        before = self._initial(level) if first_reduce else []
        made = self._loop(level, lambda: self._inside(level))
        made = grouped(made, 0) if first_reduce else made
        return Seq((*before, made)) if before else made

    def _loop(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        it = self.stage.iters[level]
        if self.peeled is not None and it.name == self.peeled.children[0]:
            return self._full_then_rest(level, self.peeled, body)
        if it.name == self.across:
            return self._with_starts(level, body)
        partly = self.lanes_in_use if it.name == self.stage.lanes else None
        return self._repeated(level, self.extents[it.name] if partly is None else partly, body)

    def _repeated(self, level: int, extent: Extent, body: Callable[[], Stmt]) -> Stmt:
        """Loop number *level* with *extent* iterations."""
        it = self.stage.iters[level]
        if extent == 1 and not self.kinds[it.name].is_bound:
            self.leaves[it.name] = as_expr(0)
            return self._with_starts(level, body)
        kind = self.kinds[it.name]
        if kind in BLOCK_THREADS:
            number, threads = self._number(it.name), self.outer.threads_left(kind)
            if kind is not ForKind.VTHREAD and threads is not None and threads < number:
                return self._in_turns(level, threads, number, body)
        var = self.outer.fresh(it.name)
        self.leaves[it.name] = var
        with self.outer.loop((self.name, it.name), var, extent, kind):
            if self.stage.pipeline is not None and self.stage.pipeline[0] == it.name:
                return self._pipelined(level, var, extent)
            self._start_tiles(it.name, var)
            return repeated(var, extent, kind, self._with_starts(level, body))

    def _pipelined(self, level: int, var: Var, extent: Extent) -> Stmt:
        """Loop number *level* with its tiles copied ahead of their use, if that is possible."""
        assert self.stage.pipeline is not None
        tiles, depth = self._producers(level), min(number(self.stage.pipeline[1]), most(extent))
        rest = self._rest(level)
        if depth > 1 and copies_ahead(self.outer.bounds, self.stage):
            return pipelined(var, extent, depth, tiles, rest)
        return For(var, extent, ForKind.SERIAL, self._with_producers(tiles, rest))

    def _in_turns(self, level: int, threads: int, extent: int, body: Callable[[], Stmt]) -> Stmt:
        """Loop number *level*, bound to an index with too few *threads*, in several turns."""
        it = self.stage.iters[level]
        turn, thread = self.outer.fresh(f"{it.name}.turn"), self.outer.fresh(it.name)
        turns = -(-extent // threads)
        self.leaves[it.name] = at = turn * threads + thread
        with (
            self.outer.loop((self.name, f"{it.name}.turn"), turn, turns, ForKind.SERIAL),
            self.outer.loop((self.name, it.name), thread, threads, self.kinds[it.name]),
        ):
            stmt = self._with_starts(level, body)
        if turns * threads > extent:
            stmt = If(at < as_expr(extent), stmt, None)
        inner = For(thread, threads, self.kinds[it.name], stmt)
        return For(turn, turns, ForKind.SERIAL, inner)

    def _full_then_rest(self, level: int, split: SplitRelation, body: Callable[[], Stmt]) -> Stmt:
        """A loop over the parts that fill all lanes, then the last part, which fills only some."""
        outer, lanes = split.children
        extent, size = self.extents[split.parent], fixed(self.extents[lanes])
        full, rest = extent // size, extent % size
        parts = [self._repeated(level, full, body)] if most(full) > 0 else []
        if most(rest) > 0:
            self.leaves[outer], self.lanes_in_use = as_expr(full), rest
            parts.append(self._with_starts(level, body))
            self.lanes_in_use = None
        return Seq(tuple(parts)) if len(parts) > 1 else parts[0]

    def _start_tiles(self, name: str, var: Var) -> None:
        for relation in self.stage.relations:
            if not is_ragged(relation, self.extents) or name != relation.children[0]:
                continue
            tile = prod(fixed(self.extents[c]) for c in relation.children[1:])
            last = self.extents[relation.parent] - tile
            start = self.outer.fresh(f"{relation.parent}.start")
            value: Expr = Binary(BinaryOp.MIN, var * tile, as_expr(last))
            if self.second is not None and self.second.relation is relation:
                value, self.tile = self.second.start(var), (var, start)
            self.starts[relation.parent] = start
            self.pending.append((start, value))
            self.outer.define(start, value, last)

    def _with_starts(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        """*body* with the pending tile starts bound; deferred to the innermost parallel loop."""
        nest = [self.kinds[it.name] for it in self.stage.iters[level : level + 2]]
        if nest == [ForKind.PARALLEL, ForKind.PARALLEL]:
            return body()
        starts, self.pending = self.pending, []
        tile, self.tile = self.tile, None
        stmt = body() if tile is None else self._two_bodies(*tile, body)
        for var, value in reversed(starts):
            stmt = Let(var, value, stmt)
        bound = {var for var, _ in starts}
        self.starts = {loop: var for loop, var in self.starts.items() if var not in bound}
        return stmt

    def _two_bodies(self, n: Var, start: Var, body: Callable[[], Stmt]) -> Stmt:
        """*body* once for the full tiles and once for the smaller ones."""
        second = self.second
        assert second is not None
        if self.outer.in_second_body:
            raise ScheduleError(
                "the stage is computed inside tiles that already have two bodies",
                stage=self.name, program=self.state.text(self.name),
                hint=f'split "{second.relation.parent}" with tail="guard" or "shift"',
            )  # fmt: skip
        whole, extents = dict(self.extents), self.extents
        smaller = dict(zip(second.relation.children[1:], second.extents, strict=True))
        made = []
        for is_second in (False, True):
            key = (self.name, second.relation.parent)
            extents.update(smaller if is_second else {})
            sizes = {key: second.extents} if is_second else {}
            numbers, starts = second.ranges(second=is_second)
            with self.outer.body(sizes, {n: numbers, start: starts}):
                made.append(body())
        extents.update(whole)
        return If(n < as_expr(second.first), made[0], made[1])

    def _inside(self, level: int) -> Stmt:
        """The body of loop *level*: the stages computed there, then the rest of this stage."""
        producers = self._producers(level)
        made = self._with_producers(producers, self._rest(level))
        return self._unless_beyond(level, made) if producers else made

    def _with_producers(self, producers: Sequence[Producer], stmt: Stmt) -> Stmt:
        """*stmt* after the statements that fill the buffers it reads, with barriers."""
        parts, stmt = synchronised([(tile.buffer, tile.fill) for tile in producers], stmt)
        for n, (tile, part) in reversed([*enumerate(zip(producers, parts, strict=True))]):
            stmt = Seq((*part, stmt))
            if tile.allocated and all(tile.buffer is not before.buffer for before in producers[:n]):
                stmt = Alloc(tile.buffer, stmt)
            stmt = bound_to(tile.lets, stmt)
        return stmt

    def _producers(self, level: int) -> list[Producer]:
        """The tiles computed in loop number *level*, producers first."""
        name = self.stage.iters[level].name
        made: list[Producer] = []
        for stage in self.state.stages:
            if stage.attach == Attach(self.name, name):
                made.append(self._producer(stage, level))
            elif stage in self.carries and stage.carried and stage.carried.iter == name:
                made += _StageNest(self.outer, stage.name).continued(self.leaves)
        return made

    def _producer(self, stage: Stage, level: int) -> Producer:
        region = self.outer.bounds.region(stage.name)
        values = self._axis_values(level)
        together = stage.shared_by
        if together:
            values = {name: self.outer.of_first(together, value) for name, value in values.items()}
        starts = tuple(self.outer.simple(start_of(span, values)) for span in region)
        lets = self.outer.place(stage.name, region, starts)
        shape = tuple(
            most(span.extent) for span in region if isinstance(span.extent, int | Symbolic)
        )
        strides = padded_strides(shape, number(stage.pad))
        scope = self._scope(stage, level)
        swizzle = gcd(stage.swizzle, shape[-1] * stage.op.dtype.bytes) if stage.swizzle else 0
        dtype = stage.op.dtype
        if scope is Scope.LOCAL and adds_halves(self.state, stage):
            dtype = dtype.of_sums
        buffer = Buffer(stage.name, shape, dtype, scope, strides, stage.fragment, swizzle)
        require_whole_fragments(self.state, stage, buffer)
        if stage.name in self.outer.overlays:
            buffer = self.outer.buffers[self.outer.overlays[stage.name]]
        self.outer.buffers[stage.name] = buffer
        return Producer(buffer, lets, self.outer.statement(stage.name))

    def _rest(self, level: int) -> Stmt:
        """What follows the stages computed in loop *level*, in this stage's own loops.

        Sums are complete before they are rescaled again.
        """
        carried = {s.carried.iter for s in self.carries if s.carried is not None}
        rest = self._from(level + 1)
        if self.stage.iters[level].name not in carried:
            return rest
        return self._rescaling(level + 1, grouped(rest, 0))

    def continued(self, leaves: Mapping[str, Expr]) -> list[Producer]:
        """One iteration of this carried stage, in the loops of its host, whose values are *leaves*.

        What sums are rescaled by needs the maximum before the iteration.
        """
        assert self.stage.carried is not None
        loops = self.stage.carried.loops
        self.leaves.update((own, leaves[other]) for own, other in loops)
        made: list[Producer] = []
        if any(s.rescaled is not None and s.rescaled.top == self.name for s in self.state.stages):
            before = replace(self.buffer, name=f"{self.name}.before")
            self.outer.buffers[before.name] = before

            def kept() -> Stmt:
                at = self._write_index()
                return Store(before, at, Load(self.buffer, at), None)

            made.append(Producer(before, (), self._each_own(len(loops), kept)))
        added = self._rescaling(len(loops), self._from(len(loops)))
        return [*made, Producer(self.buffer, (), added, allocated=False)]

    def _scope(self, stage: Stage, level: int) -> Scope:
        """The memory scope of *stage*'s box: LOCAL, unless threads inside this level share it."""
        if stage.scope is Scope.WARP:
            return stage.scope
        if is_in_shared(self.state, stage):
            return Scope.SHARED
        inner = [self.kinds[it.name] for it in self.stage.iters[level + 1 :]]
        below = ForKind.PARALLEL in inner or self._is_in_parallel(stage)
        shared = below and not self.outer.in_parallel
        return Scope.WORKSPACE if shared or stage.scope is Scope.WORKSPACE else Scope.LOCAL

    def _is_in_parallel(self, stage: Stage) -> bool:
        """Whether a stage computed in this one runs *stage*, or a reader of it, in parallel."""
        bounds = self.outer.bounds
        users = (stage.name, *bounds.inlined_dag.readers.get(stage.name, ()))
        return any(
            member.parallel is not None and any(bounds.within(u, member.name, 0) for u in users)
            for member in self.state.members(self.name)
        )

    # Statements

    def _store(self) -> Stmt:
        body = self.op.body
        source = body.source if isinstance(body, Reduce) else body
        values = self._axis_values()
        axes = (*self.op.axes, *self.op.reduce_axes)
        mapping: dict[Var, Expr] = {a: values[a.name] for a in axes}
        value = map_loads(substitute(source, mapping), lambda x: self.outer.load(self.name, x))
        kind = body.kind if isinstance(body, Reduce) else None
        inner = {
            self.leaves[it.name] for it in self.stage.iters
            if it.kind is not AxisKind.REDUCE
            and self.kinds[it.name] in (ForKind.UNROLLED, ForKind.VECTORIZED)
        }  # fmt: skip
        # Lanes and threads run together, whatever the condition of one of them.
        together = isinstance(self.sums, LaneSums | ThreadSums)
        condition = None if kind is None or together else condition_to_add(value, kind, inner)
        if condition is not None and isinstance(value, Select):
            value = value.then
        if self.sums is None:
            value = value.astype(self.buffer.dtype)
            stmt = self._masked(Store(self.buffer, self._write_index(), value, kind))
        else:
            stmt = self._masked(self.sums.added(self._sum_index(), value))
        return self._guarded(stmt if condition is None else If(condition, stmt, None))

    def _instruction(self, level: int) -> Stmt:
        """The loops from *level* inward as the instruction that the schedule names."""
        assert self.stage.tensorized is not None
        inner = self.stage.iters[level:]
        if self.hosts & {it.name for it in inner}:
            raise ScheduleError(
                "another stage is computed inside the loops of the instruction",
                stage=self.name, program=self.state.text(self.name),
            )  # fmt: skip
        reduces = self.sum_level is not None and self.sum_level < level
        before = [] if reduces or self.stage.carried is not None else self._initial(level)
        loops = {it.name: self.outer.counter(it.name, self._number(it.name)) for it in inner}
        self.leaves.update(loops)
        store = self._store()
        if not isinstance(store, Store):
            raise ScheduleError(
                "the loops of an instruction must divide their axes",
                stage=self.name, program=self.state.text(self.name),
            )  # fmt: skip
        sized = [(it.kind, (loops[it.name], self._number(it.name))) for it in inner]
        made = as_instruction(
            self.stage.tensorized[1], store,
            [x for kind, x in sized if kind is not AxisKind.REDUCE],
            [x for kind, x in sized if kind is AxisKind.REDUCE],
        )  # fmt: skip
        return Seq((*before, made)) if before else made
