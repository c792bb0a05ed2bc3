"""Base class for rewriting expressions and statements; unchanged parts are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import is_
from typing import overload

from ansorpy.ir.expr import Expr, Load, Var, children
from ansorpy.ir.loops import (
    Alloc,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    Fence,
    For,
    If,
    Instruction,
    Let,
    Prefetch,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.operands import with_operands
from ansorpy.ir.tensor import Tensor

__all__ = ["Rewriter", "map_children", "map_statements", "substitute"]

ExprFn = Callable[[Expr], Expr]


class Rewriter:
    """Rewrites bottom up; override :meth:`leave`, :meth:`source` or :meth:`stmt`.

    A node that a method returns unchanged (``is``) is shared, so a rewriter that changes nothing
    returns the same node object.  Each expression node is rewritten once per instance.
    """

    def __init__(self) -> None:
        self._memo: dict[Expr, Expr] = {}

    def expr(self, e: Expr) -> Expr:
        """Rewrite *e*."""
        done = self._memo.get(e)
        if done is None:
            done = self.leave(map_children(e, self.expr, self.source))
            self._memo[e] = done
        return done

    def leave(self, e: Expr) -> Expr:
        """The replacement of *e*, whose operands are already rewritten; the default keeps it."""
        return e

    def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
        """The replacement of a tensor or buffer that is read, written or allocated."""
        return source

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite *s*, including the statements and expressions inside it."""
        return _STMTS[type(s)](self, s)

    def _buffer(self, buffer: Buffer) -> Buffer:
        found = self.source(buffer)
        if not isinstance(found, Buffer):
            raise TypeError(f"a statement needs a buffer to replace {buffer.name}")
        return found


def map_children(
    e: Expr, fn: ExprFn, source: Callable[[Tensor | Buffer], Tensor | Buffer] | None = None
) -> Expr:
    """*e* with *fn* applied to its operands (and *source* to what it reads); *e* if unchanged."""
    old = children(e)
    new = tuple([fn(part) for part in old])  # a call through `map` would need more of the stack
    if source is not None and isinstance(e, Load):
        read = source(e.source)
        if read is not e.source:
            return Load(read, new)
    return e if _same(old, new) else with_operands(e, new)


def map_statements(s: Stmt, fn: Callable[[Stmt], Stmt]) -> Stmt:
    """*s* with *fn* applied to the statements directly in it; *s* itself if all are unchanged."""
    match s:
        case Seq(body):
            parts = tuple(fn(part) for part in body)
            return s if _same(body, parts) else Seq(parts)
        case For(var, extent, kind, body):
            inner = fn(body)
            return s if inner is body else For(var, extent, kind, inner)
        case If(cond, then, other):
            first, second = fn(then), None if other is None else fn(other)
            return s if first is then and second is other else If(cond, first, second)
        case Let(var, value, body):
            inner = fn(body)
            return s if inner is body else Let(var, value, inner)
        case Alloc(buffer, body):
            inner = fn(body)
            return s if inner is body else Alloc(buffer, inner)
    return s


def _same(old: Iterable[object], new: Iterable[object]) -> bool:
    return all(map(is_, old, new))


def _inside(r: Rewriter, s: Stmt) -> Stmt:
    return map_statements(s, r.stmt)


def _if(r: Rewriter, s: If) -> Stmt:
    cond, then = r.expr(s.cond), r.stmt(s.then)
    other = None if s.other is None else r.stmt(s.other)
    unchanged = cond is s.cond and then is s.then and other is s.other
    return s if unchanged else If(cond, then, other)


def _let(r: Rewriter, s: Let) -> Stmt:
    value, body = r.expr(s.value), r.stmt(s.body)
    return s if value is s.value and body is s.body else Let(s.var, value, body)


def _alloc(r: Rewriter, s: Alloc) -> Stmt:
    buffer, body = r._buffer(s.buffer), r.stmt(s.body)
    return s if buffer is s.buffer and body is s.body else Alloc(buffer, body)


def _store(r: Rewriter, s: Store | AsyncCopy | Shuffle) -> Stmt:
    buffer, value = r._buffer(s.buffer), r.expr(s.value)
    indices = tuple(map(r.expr, s.indices))
    unchanged = buffer is s.buffer and value is s.value and _same(s.indices, indices)
    return s if unchanged else replace(s, buffer=buffer, indices=indices, value=value)


def _prefetch(r: Rewriter, s: Prefetch) -> Stmt:
    buffer, offset = r._buffer(s.buffer), r.expr(s.offset)
    return s if buffer is s.buffer and offset is s.offset else Prefetch(buffer, offset)


def _plain(r: Rewriter, s: Stmt) -> Stmt:
    return s


def _instruction(r: Rewriter, s: Instruction) -> Stmt:
    new = tuple((r._buffer(b), tuple(r.expr(i) for i in at)) for b, at in s.operands)
    unchanged = all(
        b is nb and _same(at, nat) for (b, at), (nb, nat) in zip(s.operands, new, strict=True)
    )
    return s if unchanged else Instruction(s.name, new)


_STMTS: dict[type[Stmt], Callable[..., Stmt]] = {
    Seq: _inside, For: _inside, If: _if, Let: _let, Alloc: _alloc, Store: _store, Barrier: _plain,
    Instruction: _instruction, AsyncCopy: _store, Commit: _plain, Wait: _plain,
    Prefetch: _prefetch, Shuffle: _store, Fence: _plain,
}  # fmt: skip


class _Substitution(Rewriter):
    def __init__(self, mapping: Mapping[Var, Expr]):
        super().__init__()
        self._memo = {var: new for var, new in mapping.items()}


@overload
def substitute(node: Expr, mapping: Mapping[Var, Expr]) -> Expr: ...
@overload
def substitute(node: Stmt, mapping: Mapping[Var, Expr]) -> Stmt: ...
def substitute(node: Expr | Stmt, mapping: Mapping[Var, Expr]) -> Expr | Stmt:
    """*node* with all variables of *mapping* replaced simultaneously.

    >>> i, j = Var("i"), Var("j")
    >>> new = substitute(i + j, {i: j, j: i})
    >>> new.a is j and new.b is i
    True
    """
    rewriter = _Substitution(mapping)
    return rewriter.expr(node) if isinstance(node, Expr) else rewriter.stmt(node)
