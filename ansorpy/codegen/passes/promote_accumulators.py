"""Accumulate in registers: a reduction adds into a local tile, which is stored when it ends.

Before::                                   After::

    for i, j: C[p+i, q+j] = 0                  alloc acc[14, 32]
    for k:                                       for i, j: acc[i, j] = 0
      for i in unrolled, j in vectorized:        for k:
        C[p+i, q+j] += a * b                       for i, j: acc[i, j] += a * b
                                                 for i, j: C[p+i, q+j] = acc[i, j]

The tile's indices are constants once the inner loops are expanded, so LLVM turns it into SSA
values that all enclosing reduce loops carry.  Without a matching initial store the tile starts
from what memory holds.  Tiles under guards may be computed in full
(:mod:`ansorpy.codegen.passes.guarded_tiles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansorpy.codegen.passes.guarded_tiles import half_of, holds_first, in_full
from ansorpy.codegen.tiles import Tile, as_sequence, find_tiles, register_buffers, same_region
from ansorpy.ir.expr import Expr, Load, Var, as_expr
from ansorpy.ir.loops import Alloc, Buffer, For, If, Program, Scope, Seq, Stmt, Store, walk_stmts
from ansorpy.ir.rewrite.rewriter import Rewriter, map_statements, substitute
from ansorpy.target import Target

__all__ = ["promote"]


def promote(program: Program, target: Target, *, in_full: bool = False) -> Program:
    """Accumulate every reduction of *program* that fits in registers of *target*.

    With *in_full*, tiles under guards are computed in full where that is possible.
    """
    return program.with_body(
        _Promotion(target, register_buffers(program.body), in_full).stmt(program.body)
    )


class _Promotion:
    """Walks the program from the outside in, so that tiles start at the outermost reduce loop."""

    def __init__(self, target: Target, in_registers: set[Buffer], in_full: bool) -> None:
        self.target = target
        self.in_registers = in_registers
        self.in_full = in_full
        self.outer: list[For] = []

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Seq():
                return self._seq(stmt)
            case For():
                return self._for(stmt, None)[0]
            case _:
                return map_statements(stmt, self.stmt)

    def _seq(self, stmt: Seq) -> Stmt:
        done: list[Stmt] = []
        parts = as_sequence(stmt)
        for part in parts:
            if not isinstance(part, For):
                done.append(self.stmt(part))
                continue
            new, uses_init = self._for(part, done[-1] if done else None)
            if uses_init:
                done.pop()
            done.append(new)
        unchanged = len(done) == len(stmt.body) and all(
            a is b for a, b in zip(done, stmt.body, strict=True)
        )
        return stmt if unchanged else Seq(tuple(done))

    def _for(self, loop: For, before: Stmt | None) -> tuple[Stmt, bool]:
        """The rewritten *loop*, and whether it absorbed the statement *before* it."""
        tile = self._chosen(loop, before)
        if tile is None:
            return self._in_memory(loop), False
        init, first = self._initial(before, tile), self._first(tile)
        cleared = before if init is not None else None
        made = self._accumulated(tile, loop, init, cleared, is_whole=first is not None)
        return made if first is None else If(first, made, None), init is not None

    def _in_memory(self, loop: For) -> Stmt:
        self.outer.append(loop)
        new = map_statements(loop, self.stmt)
        self.outer.pop()
        return new

    def _accumulated(
        self, tile: Tile, loop: For, init: Store | None, cleared: Stmt | None, *, is_whole: bool
    ) -> Stmt:
        """*loop* with *tile* accumulated; with *is_whole*, in full or half, whatever its guards.

        *cleared* is the statement that *init* is in.  A tile that does not fit stays in memory.
        """
        if self._fits(tile, loop):
            made = _Accumulator(tile, is_whole=is_whole)
            self.in_registers.add(made.buffer)
            inner, _ = self._for(made.accumulating(loop), None)
            done: Stmt = Alloc(made.buffer, Seq((made.initial(init), inner, made.final())))
        else:
            done = self._in_memory(loop)
            done = done if cleared is None else Seq((cleared, done))
        half = half_of(tile, self.target) if is_whole else None
        if half is None:
            return done
        smaller = half.of_tile(tile), half.of_nest(loop)
        less = self._accumulated(*smaller, init, cleared, is_whole=True)
        return If(half.needs_more, done, less)

    def _chosen(self, loop: For, before: Stmt | None) -> Tile | None:
        for tile in find_tiles(loop, self.outer):
            is_held = tile.store.buffer in self.in_registers and self._first(tile) is None
            is_unset = tile.varying and self._initial(before, tile) is None
            if not is_held and not is_unset and self._may_fit(tile, loop):
                return tile
        return None

    def _may_fit(self, tile: Tile, loop: For) -> bool:
        """Whether *tile*, or a half of it that may suffice, fits in registers."""
        if self._fits(tile, loop):
            return True
        half = None if self._first(tile) is None else half_of(tile, self.target)
        return half is not None and self._may_fit(half.of_tile(tile), half.of_nest(loop))

    def _initial(self, before: Stmt | None, tile: Tile) -> Store | None:
        """The store of the statement *before* that initialises *tile*, if there is one."""
        if before is None or (tile.guards and not self.in_full):
            return None
        return same_region(before, tile)

    def _first(self, tile: Tile) -> Expr | None:
        """The condition under which *tile* is computed in full; None if it is not."""
        return holds_first(tile) if self.in_full else None

    def _fits(self, tile: Tile, loop: For) -> bool:
        """True if the tile leaves room for operands, or no inner loop has a smaller tile.

        A tile slightly larger than the register file is still better kept across all reduce loops
        (LLVM spills the excess) than read and written in each innermost iteration.
        """
        wanted = tile.vectors(self.target)
        registers = self.target.vector_registers
        if wanted <= registers:
            return True
        inner = self._tiles_inside(tile.store, loop)
        return wanted <= 2 * registers and all(t.vectors(self.target) >= wanted for t in inner)

    def _tiles_inside(self, store: Store, loop: For) -> Iterator[Tile]:
        """The tiles of *store* in loops inside *loop*."""
        for s in walk_stmts(loop.body):
            if isinstance(s, For):
                inner = find_tiles(s, (*self.outer, loop))
                yield from (tile for tile in inner if tile.store is store)


class _Accumulator:
    """The local buffer of one tile, and the loops that set, fill and store it."""

    def __init__(self, tile: Tile, *, is_whole: bool) -> None:
        self.tile, self.is_whole = tile, is_whole
        self.target = tile.store.buffer
        shape = tuple(loop.extent for loop in tile.axes) or (1,)
        self.buffer = Buffer(
            f"{self.target.name}.acc", shape, self.target.dtype.of_sums, Scope.LOCAL
        )

    def initial(self, init: Store | None) -> Stmt:
        """Initialise the tile from the store before it, from memory, or (lanes) to the identity."""
        store, dtype = self.tile.store, self.buffer.dtype
        assert store.reduce is not None
        is_from_memory = init is None and not self.tile.lanes
        if self.tile.lanes:
            value: Expr = as_expr(store.reduce.identity(dtype), dtype)
        elif init is not None:
            value = init.value.astype(dtype)
        else:
            value = Load(self.target, store.indices).astype(dtype)
        first = Store(self.buffer, self._indices(), value, None)
        return self._nest(first, guarded=is_from_memory)

    def accumulating(self, loop: For) -> For:
        """*loop* with its store redirected to the tile."""
        old = self.tile.store
        value = in_full(self.tile) if self.is_whole else old.value
        new = Store(self.buffer, self._indices(), value.astype(self.buffer.dtype), old.reduce)
        rewritten = _Replaced(old, new, self.tile.guards if self.is_whole else ()).stmt(loop)
        assert isinstance(rewritten, For)
        return rewritten

    def final(self) -> Stmt:
        """Write the tile back; lanes that share an element are combined."""
        old = self.tile.store
        value = Load(self.buffer, self._indices()).astype(self.target.dtype)
        reduce = old.reduce if self.tile.lanes else None
        return self._nest(Store(self.target, old.indices, value, reduce), guarded=True)

    def _indices(self) -> tuple[Expr, ...]:
        return tuple(loop.var for loop in self.tile.axes) or (as_expr(0),)

    def _nest(self, body: Stmt, *, guarded: bool) -> Stmt:
        """*body* in copies of the tile's loops, with fresh variables."""
        for cond in reversed(self.tile.guards if guarded else ()):
            body = If(cond, body, None)
        fresh = {loop.var: Var(loop.var.name) for loop in self.tile.loops}
        body = substitute(body, dict(fresh))
        for loop in reversed(self.tile.loops):
            body = For(fresh[loop.var], loop.extent, loop.kind, body)
        return body


class _Replaced(Rewriter):
    """Replaces one store, and leaves out the *guards* around it."""

    def __init__(self, old: Store, new: Store, guards: Sequence[Expr]) -> None:
        super().__init__()
        self.old, self.new, self.guards = old, new, guards

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, If) and any(s.cond is guard for guard in self.guards):
            return self.stmt(s.then)
        return self.new if s is self.old else super().stmt(s)
