"""Loop programs for GPU blocks: launches, barriers, and virtual threads as loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansorpy.ir.expr import Expr, Load, Var, as_expr, walk
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    expressions,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter, map_statements, substitute
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import Tensor
from ansorpy.schedule.lowering.gpu.asynchronous import grouped, made_visible
from ansorpy.schedule.lowering.gpu.boxes import waited_for
from ansorpy.schedule.lowering.gpu.buffer_instances import InInstance

__all__ = ["is_launched", "launched", "synchronised", "without_vthreads"]


def is_launched(stmt: Stmt) -> bool:
    """Whether some loop of *stmt* is bound to a block or thread index."""
    return any(isinstance(s, For) and s.kind.is_bound for s in walk_stmts(stmt))


def launched(stmt: Stmt) -> Stmt:
    """*stmt* as a kernel; if no loop is bound, a single thread runs it."""
    if is_launched(stmt):
        return stmt
    inner = For(Var("thread"), 1, ForKind.THREAD_X, stmt)
    return For(Var("block"), 1, ForKind.BLOCK_X, inner)


def synchronised(
    made: Sequence[tuple[Buffer, Stmt]], rest: Stmt
) -> tuple[list[tuple[Stmt, ...]], Stmt]:
    """The statements that fill the buffers *made*, and *rest* that reads them, with barriers.

    A barrier precedes the first statement that fills shared memory, because threads may still read
    the previous iteration's data there; each statement that reads data filled since the last
    barrier; and each statement that refills a buffer.  *rest* ends by waiting for the asynchronous
    instructions that it starts, if it reads shared memory that is filled here.
    """
    barrier = Barrier(Scope.SHARED)
    shared = [buffer for buffer, _ in made if buffer.scope is Scope.SHARED]
    parts: list[tuple[Stmt, ...]] = []
    filled: set[Buffer] = set()
    for n, (buffer, fill) in enumerate(made):
        stmt = waited_for(fill)
        first = bool(shared) and buffer is shared[0]
        if _reads_any(stmt, filled) or first or any(buffer is other for other, _ in made[:n]):
            later = [other for _, other in made[n + 1 :]]
            readers = Seq((stmt, *later, rest)) if filled else Seq(())
            stmt, filled = Seq((*made_visible(readers), barrier, stmt)), set()
        if buffer.scope is Scope.SHARED:
            filled.add(buffer)
        parts.append((stmt,))
    used = grouped(rest, 0) if _reads_any(rest, shared) else rest
    return parts, Seq((*made_visible(rest), barrier, used)) if filled else used


def _reads_any(stmt: Stmt, buffers: Iterable[Buffer]) -> bool:
    """Whether *stmt*, or an instruction in it, loads from one of *buffers*."""
    wanted = set(buffers)
    return bool(wanted) and any(
        source in wanted for s in walk_stmts(stmt) for source in _sources(s)
    )


def _sources(s: Stmt) -> Iterable[Tensor | Buffer]:
    """The tensors and buffers that *s* itself reads."""
    if isinstance(s, Instruction):
        yield from (buffer for buffer, _ in s.operands)
    yield from (e.source for root in expressions(s) for e in walk(root) if isinstance(e, Load))


def without_vthreads(stmt: Stmt) -> Stmt:
    """*stmt* with the virtual threads of each thread run one after another.

    Virtual threads run in step: between two barriers, and in each iteration of every loop, each
    does its part in turn, so that they share operands in registers.  They also share the contents
    of shared memory, which is filled once; buffers private to a thread get one more dimension, in
    front.
    """
    return _Unvirtual().stmt(stmt)


class _Unvirtual(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        s = super().stmt(s)
        if not isinstance(s, For) or s.kind is not ForKind.VTHREAD:
            return s
        if s.extent == 1:
            return substitute(s.body, {s.var: as_expr(0)})
        return _Pushed(s.var, fixed(s.extent)).stmt(s.body)


class _Pushed:
    """Statements with the loop over the virtual threads of *var* moved inside."""

    def __init__(self, var: Var, extent: int):
        self.var = var
        self.extent = extent
        self.own: dict[Buffer, Buffer] = {}
        self.lets: dict[Var, Expr] = {}
        """Definitions that differ between virtual threads and must be bound in each of them."""

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case Alloc(buffer, body):
                if buffer.scope in (Scope.LOCAL, Scope.WARP):
                    self.own[buffer] = self._for_each(buffer)
                return Alloc(self.own.get(buffer, buffer), self.stmt(body))
            case Let(var, value, body) if self._varies(value):
                self.lets[var] = value
                return self.stmt(body)
        return map_statements(s, self.stmt) if self._is_common(s) else self._repeated(s)

    def _is_common(self, s: Stmt) -> bool:
        """Whether virtual threads run *s* in step."""
        match s:
            case For(kind=kind):
                return kind is not ForKind.VECTORIZED
            case If(cond=cond):
                return not self._varies(cond)
        return isinstance(s, Seq | Let)

    def _for_each(self, buffer: Buffer) -> Buffer:
        """*buffer* with an instance for each virtual thread."""
        shape, fragment = (self.extent, *buffer.shape), buffer.fragment
        fragment = None if fragment is None else ((), *fragment)
        return Buffer(buffer.name, shape, buffer.dtype, buffer.scope, None, fragment)

    def _varies(self, e: Expr) -> bool:
        return any(
            part is self.var
            or part in self.lets
            or (isinstance(part, Load) and part.source in self.own)
            for part in walk(e)
        )

    def _repeated(self, s: Stmt) -> Stmt:
        """*s*, which has no barrier, for each virtual thread; once if they do not differ."""
        alone = not any(self._varies(e) for part in walk_stmts(s) for e in expressions(part))
        if alone and not any(buffer in self.own for buffer in _written(s)):
            return s
        s = InInstance(self.own, self.var).stmt(s)
        for var, value in reversed(self.lets.items()):
            used = {e for part in walk_stmts(s) for root in expressions(part) for e in walk(root)}
            s = Let(var, value, s) if var in used else s
        return For(self.var, self.extent, ForKind.UNROLLED, s)


def _written(s: Stmt) -> Iterable[Buffer]:
    """The buffers that *s* and the statements inside write."""
    for part in walk_stmts(s):
        if isinstance(part, Store | Shuffle):
            yield part.buffer
        elif isinstance(part, Instruction):
            yield part.operands[0][0]
