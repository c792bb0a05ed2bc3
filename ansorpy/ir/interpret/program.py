"""Execution of loop programs, with checks that hardware does not make.

Iterations of parallel, block and thread loops run in lockstep, each at one position of the arrays;
a serial nest around one store runs as a batch if no iteration reads an element that another one
writes.  Reading undefined memory, accessing elements outside a buffer, and conflicting accesses of
two threads with no barrier in between are errors that name the statements.  The destination of an
asynchronous copy is undefined until a wait for it has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ansorpy.arrays import Array
from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir.expr import Load, walk
from ansorpy.ir.fragments import fragment_lanes
from ansorpy.ir.interpret.asynchronous import fence, finish, start
from ansorpy.ir.interpret.copies import Copies, boxes_in
from ansorpy.ir.interpret.lanes import Lanes, Launch
from ansorpy.ir.interpret.memory import LaneFrame, Memory, Storage
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.interpret.products import Products
from ansorpy.ir.interpret.races import Clock
from ansorpy.ir.interpret.warps import one_a_team
from ansorpy.ir.intrinsics import expand, intrinsic
from ansorpy.ir.loops import (
    BLOCK_INDICES,
    LAUNCH_INDICES,
    THREAD_INDICES,
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    Fence,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Prefetch,
    Program,
    Role,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
    launch_extents,
)
from ansorpy.ir.sizes import fixed, refuse_dims

__all__ = ["Machine", "run_program"]


# Maximum iterations of a serial nest that run as one batch: enough to hide numpy's overhead.
BATCH = 1 << 18


def run_program(program: Program, args: Sequence[Array]) -> None:
    """Run *program* on *args*, in the order of its parameters; outputs are written in place.

    The program must not read the initial contents of outputs: they count as undefined.

    Raises:
        UsageError: An argument does not match its parameter, or the program has dimensions.
        LoweringError: The program accesses elements outside a buffer, reads undefined memory,
            diverges at a barrier, or leaves an output element unwritten.
        Race: Accesses of two threads conflict with no barrier in between (a LoweringError).
    """
    refuse_dims(program.dims)
    runner = Machine()
    lanes = Lanes.single()
    for param, array in zip(program.params, _checked(program, args), strict=True):
        outside = param.role is not Role.OUTPUT
        defined = np.full(array.size, outside, dtype=np.bool_)
        runner.memory.storage[param.buffer] = Storage(array.reshape(-1), defined)
        lanes = lanes.bind(param.buffer, 0)
        if outside:
            runner.read_only.add(param.buffer)
    with np.errstate(all="ignore"):
        runner.run(program.body, lanes)
    for param in program.params:
        missing = int((~runner.memory.storage[param.buffer].defined).sum())
        if missing:
            raise LoweringError(
                f"{program.name} leaves {missing} of {param.buffer.size} elements of "
                f"{param.buffer.name} unwritten"
            )


def _checked(program: Program, args: Sequence[Array]) -> Sequence[Array]:
    if len(args) != len(program.params):
        raise UsageError(f"{program.name} takes {len(program.params)} arrays, got {len(args)}")
    for param, array in zip(program.params, args, strict=True):
        buffer = param.buffer
        if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
            raise UsageError(
                f"{buffer.name} is {buffer.dtype.value}{list(buffer.shape)}, "
                f"got {array.dtype}{list(array.shape)}"
            )
        if not array.flags.c_contiguous:
            raise UsageError(f"{buffer.name} needs a dense, row-major array")
    return args


class Machine:
    """An abstract machine that runs statements; ``memory`` holds the arrays."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.read_only: set[Buffer] = set()
        # Distance between the instances of a local buffer, for each thread index not bound yet.
        self.spread: dict[Buffer, dict[ForKind, int]] = {}
        self.batches: dict[Stmt, bool] = {}
        self.expansions: dict[Instruction, Stmt] = {}

    def run(self, s: Stmt, lanes: Lanes) -> None:
        if lanes.count:
            _RUN[type(s)](self, s, lanes)

    def _seq(self, s: Seq, lanes: Lanes) -> None:
        for part in s.body:
            self.run(part, lanes)

    def _if(self, s: If, lanes: Lanes) -> None:
        self.memory.statement = s
        cond = self.memory.value(s.cond, LaneFrame(lanes))
        if np.ndim(cond) == 0:
            taken = s.then if cond else s.other
            if taken is not None:
                self.run(taken, lanes)
            return
        self.run(s.then, lanes.select(cond))
        if s.other is not None:
            self.run(s.other, lanes.select(~cond))

    def _let(self, s: Let, lanes: Lanes) -> None:
        self.memory.statement = s
        self.run(s.body, lanes.bind(s.var, self.memory.value(s.value, LaneFrame(lanes))))

    # Loops

    def _for(self, s: For, lanes: Lanes) -> None:
        if s.kind in LAUNCH_INDICES:
            self._hardware(s, lanes)
        elif s.kind is ForKind.PARALLEL:
            self._parallel(s, lanes)
        elif self._in_step(s, lanes):
            self.run(s.body, lanes.expand(s.var, fixed(s.extent)))
        else:
            for i in range(fixed(s.extent)):
                self.run(s.body, lanes.bind(s.var, i))

    def _in_step(self, s: For, lanes: Lanes) -> bool:
        """True for virtual threads, boxes, and a nest whose iterations are independent."""
        if s.kind is ForKind.BULK or (s.kind is ForKind.VTHREAD and lanes.launch is not None):
            return True
        found = self.batches.get(s)
        if found is None:
            found = self.batches[s] = _is_batch(s)
        return found and lanes.count * s.extent <= BATCH

    def _parallel(self, s: For, lanes: Lanes) -> None:
        if lanes.launch is not None:
            raise LoweringError(f"a parallel loop over {s.var.name} is inside a kernel launch")
        outermost = self.memory.clock is None
        if outermost:
            # All iterations form one "block" of unlimited size, in which no barrier orders them.
            self.memory.begin(Clock(1, 1 << 62), agreement=True)
        inner = lanes.expand(s.var, fixed(s.extent))
        inner = replace(inner, thread=inner.thread * s.extent + inner.env[s.var])
        kept = self._fresh_locals(inner)
        self.run(s.body, inner)
        self.memory.storage.update(kept)
        if outermost:
            self.memory.end()

    def _fresh_locals(self, lanes: Lanes) -> dict[Buffer, Storage]:
        """Give every lane an undefined instance of each local buffer; return the old storage."""
        kept = {}
        for key in lanes.env:
            if isinstance(key, Buffer) and key.scope is Scope.LOCAL:
                kept[key] = self.memory.storage[key]
                self._local(key, lanes)
        return kept

    def _hardware(self, s: For, lanes: Lanes) -> None:
        """Bind a block or thread index; the outermost such loop launches a kernel."""
        if lanes.launch is None:
            self._launch(s, lanes)
        elif s.kind in lanes.env:
            self._bound_again(s, lanes)
        else:
            inner = lanes.expand(s.var, fixed(s.extent))
            index = inner.env[s.var]
            inner = inner.bind(s.kind, index)
            for buffer, strides in self.spread.items():
                if buffer in inner.env and s.kind in strides:
                    inner.env[buffer] = inner.env[buffer] + index * strides[s.kind]
            step = lanes.launch.stride(s.kind)
            self.run(s.body, replace(inner, thread=inner.thread + index * step))

    def _launch(self, s: For, lanes: Lanes) -> None:
        if self.memory.clock is not None:
            raise LoweringError(f"a loop over {s.kind.value} inside a parallel loop")
        extents = launch_extents(s).items()
        launch = Launch({kind: max(1, fixed(extent)) for kind, extent in extents})
        self.memory.begin(Clock(launch.blocks, launch.threads), agreement=False)
        self.memory.copies = Copies(launch.blocks * launch.threads, boxes_in(s))
        self.memory.products = Products(launch.blocks * launch.threads)
        started = replace(lanes, env=dict(lanes.env), launch=launch)
        kept = self._fresh_locals(started)
        self._hardware(s, started)
        self.memory.storage.update(kept)
        self.memory.end()

    def _bound_again(self, s: For, lanes: Lanes) -> None:
        """Run a loop over an index that is already bound; it reuses the same hardware threads."""
        index = np.asarray(lanes.env[s.kind])
        available = int(index.max()) + 1
        if fixed(s.extent) > available:
            raise LoweringError(
                f"a loop over {s.kind.value} of extent {s.extent} is inside one of {available}"
            )
        inner = lanes.bind(s.var, lanes.env[s.kind])
        self.run(s.body, inner.select(np.broadcast_to(index < s.extent, (inner.count,))))

    # Memory

    def _alloc(self, s: Alloc, lanes: Lanes) -> None:
        buffer = s.buffer
        inner = replace(lanes, env=dict(lanes.env))
        if buffer.scope is Scope.LOCAL:
            self._local(buffer, inner)
        elif buffer.scope is Scope.SHARED:
            blocks = 1 if lanes.launch is None else lanes.launch.blocks
            self.memory.storage[buffer] = Storage.undefined(buffer, blocks)
            inner.env[buffer] = lanes.block * buffer.size
        elif buffer.scope is Scope.WARP:
            self._in_warps(buffer, inner)
        else:
            self.memory.storage[buffer] = Storage.undefined(buffer, 1)
            inner.env[buffer] = 0
        self.run(s.body, inner)
        under_way = () if self.memory.products is None else self.memory.products.started
        if any(buffer in product.buffers for product in under_way):
            raise LoweringError(f"{buffer.name} is gone while an instruction uses it")
        del self.memory.storage[buffer]
        if buffer.scope is Scope.SHARED and self.memory.copies is not None:
            self.memory.copies.forget(buffer)

    def _local(self, buffer: Buffer, lanes: Lanes) -> None:
        """Allocate one instance per lane, and per thread that an inner loop will bind."""
        extents = {} if lanes.launch is None else lanes.launch.extents
        strides: dict[ForKind, int] = {}
        size, instances = fixed(buffer.size), 1
        for kind, extent in extents.items():
            if kind not in lanes.env:
                strides[kind] = size * instances
                instances *= extent
        self.spread[buffer] = strides
        self.memory.storage[buffer] = Storage.undefined(buffer, lanes.count * instances)
        lanes.env[buffer] = 0 if lanes.count == 1 else np.arange(lanes.count) * size * instances

    def _in_warps(self, buffer: Buffer, lanes: Lanes) -> None:
        """Allocate one instance per team; all indices of its threads must be bound."""
        launch = lanes.launch
        assert buffer.fragment is not None, buffer.name
        size = fragment_lanes(buffer.fragment)
        unbound = () if launch is None else [k for k in THREAD_INDICES if k not in lanes.env]
        if launch is None or any(launch.extents.get(kind, 1) > 1 for kind in unbound):
            raise LoweringError(f"{buffer.name} of a warp is allocated outside of its threads")
        instances = launch.blocks * launch.teams(size)
        self.memory.storage[buffer] = Storage.undefined(buffer, instances)
        lanes.env[buffer] = lanes.team(size) * buffer.size

    def _store(self, s: Store, lanes: Lanes) -> None:
        memory, frame = self.memory, LaneFrame(lanes)
        memory.statement = s
        self._check_writable(s.buffer)
        indices = tuple(memory.value(i, frame) for i in s.indices)
        value = memory.value(s.value, frame)
        memory.write(s.buffer, memory.address(s.buffer, indices, lanes), value, s.reduce, lanes)

    def _check_writable(self, buffer: Buffer) -> None:
        if buffer in self.read_only:
            raise LoweringError(f"{buffer.name} is written but is not an output")

    def _instruction(self, s: Instruction, lanes: Lanes) -> None:
        loops = self.expansions.get(s)
        if loops is None:
            loops = self.expansions[s] = expand(s)
        if not intrinsic(s.name).fragments:
            self.run(loops, lanes)
            return
        self.memory.statement = s
        lanes = one_a_team(s, lanes, (i for at in self._places(s, lanes) for i in at))
        if not intrinsic(s.name).asynchronous:
            self._by_teams(loops, lanes)
            return
        places = self._places(s, lanes)
        start(self.memory, s, lanes, places, lambda: self._by_teams(loops, lanes))

    def _places(self, s: Instruction, lanes: Lanes) -> list[list[Value]]:
        """The values of the indices of the operands."""
        frame = LaneFrame(lanes)
        return [[self.memory.value(i, frame) for i in at] for _, at in s.operands]

    def _by_teams(self, loops: Stmt, lanes: Lanes) -> None:
        """Run *loops*, an instruction's expansion, with one lane per team."""
        store, lanes = lanes.nested(loops)
        self.memory.whole_warps = True
        self._store(store, lanes)
        self.memory.whole_warps = False

    def _prefetch(self, s: Prefetch, lanes: Lanes) -> None:
        """Do nothing: a prefetch has no effect, and may lie outside its buffer."""

    # Asynchronous copies

    def _copy(self, s: AsyncCopy, lanes: Lanes) -> None:
        memory, frame = self.memory, LaneFrame(lanes)
        memory.statement = s
        indices = tuple(memory.value(i, frame) for i in s.indices)
        value = memory.value(s.value, frame)
        memory.start_copy(s.buffer, memory.address(s.buffer, indices, lanes), value, s, lanes)

    def _commit(self, s: Commit, lanes: Lanes) -> None:
        groups = self._copies() if s.kind is Async.COPIES else self._products()
        groups.commit(lanes.spread(lanes.thread))

    def _wait(self, s: Wait, lanes: Lanes) -> None:
        threads = lanes.spread(lanes.thread)
        if s.kind is Async.COPIES:
            self.memory.arrive(self._copies().wait(threads, s.pending))
        else:
            finish(self.memory, self._products().wait(threads, s.pending))

    def _copies(self) -> Copies:
        if self.memory.copies is None:
            raise LoweringError("a group of copies outside of a kernel launch")
        return self.memory.copies

    # Asynchronous instructions

    def _fence(self, s: Fence, lanes: Lanes) -> None:
        if lanes.launch is None:
            raise LoweringError(f"a fence({s.scope.value}) outside of a kernel launch")
        fence(self.memory, s.scope, lanes)

    def _products(self) -> Products:
        if self.memory.products is None:
            raise LoweringError("a group of instructions outside of a kernel launch")
        return self.memory.products

    # Synchronisation

    def _shuffle(self, s: Shuffle, lanes: Lanes) -> None:
        """Store the value of each thread's partner; all threads of a warp must be here."""
        memory, launch = self.memory, lanes.launch
        memory.statement = s
        if launch is None:
            raise LoweringError("values are exchanged outside of a kernel launch")
        thread = np.asarray(lanes.spread(lanes.thread))
        order = np.argsort(thread, kind="stable")
        inside = thread % launch.threads
        partner = thread - inside + (inside ^ s.distance)
        found = order[np.searchsorted(thread[order], partner).clip(max=len(thread) - 1)]
        if len(np.unique(thread)) < len(thread) or (thread[found] != partner).any():
            raise LoweringError(
                "a thread exchanges values with one that does not take part",
                hint="let all threads of a warp take part",
            )
        frame = LaneFrame(lanes)
        self._check_writable(s.buffer)
        value = np.asarray(lanes.spread(memory.value(s.value, frame)))[found]
        indices = tuple(memory.value(i, frame) for i in s.indices)
        memory.write(s.buffer, memory.address(s.buffer, indices, lanes), value, None, lanes)

    def _barrier(self, s: Barrier, lanes: Lanes) -> None:
        clock, launch = self.memory.clock, lanes.launch
        if clock is None or launch is None:
            raise LoweringError(f"a barrier({s.scope.value}) outside of a kernel launch")
        bound = [kind for kind in LAUNCH_INDICES if kind in lanes.env]
        per_block = int(np.prod([launch.extents[k] for k in bound if k in THREAD_INDICES]))
        threads = np.unique(lanes.spread(lanes.thread))
        blocks, arrived = np.unique(threads // launch.threads, return_counts=True)
        if (arrived != per_block).any():
            raise LoweringError(
                f"only {int(arrived.min())} of {per_block} threads of a block reach "
                f"barrier({s.scope.value})",
                hint="move the barrier out of the condition",
            )
        if s.scope is Scope.SHARED:
            clock.synchronise_blocks(blocks)
        elif len(blocks) == int(np.prod([launch.extents[k] for k in bound if k in BLOCK_INDICES])):
            clock.synchronise_grid()
        else:
            raise LoweringError("only some blocks of the grid reach barrier(global)")


def _is_batch(s: Stmt) -> bool:
    """True if *s* is a nest around one store that does not read the buffer it writes."""
    conditions, nest = [], s
    while not isinstance(nest, Store):
        match nest:
            case For(_, _, ForKind.SERIAL | ForKind.VECTORIZED | ForKind.UNROLLED, body):
                nest = body
            case If(cond, then, None):
                conditions.append(cond)
                nest = then
            case Let(_, value, body):
                conditions.append(value)
                nest = body
            case _:
                return False
    read = [e for root in (*conditions, *nest.indices, nest.value) for e in walk(root)]
    return not any(isinstance(e, Load) and e.source is nest.buffer for e in read)


_RUN: dict[type[Stmt], Callable[[Machine, Any, Lanes], None]] = {
    Seq: Machine._seq, If: Machine._if, Let: Machine._let, For: Machine._for,
    Alloc: Machine._alloc, Store: Machine._store, Barrier: Machine._barrier,
    Instruction: Machine._instruction, AsyncCopy: Machine._copy, Commit: Machine._commit,
    Wait: Machine._wait, Prefetch: Machine._prefetch, Shuffle: Machine._shuffle,
    Fence: Machine._fence,
}  # fmt: skip
