"""Structural comparison of expressions and of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansorpy.ir.expr import Expr, Reduce, Var, children
from ansorpy.ir.loops import Alloc, Buffer, For, Let, Program, Stmt
from ansorpy.ir.operands import LABELS
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["same_structure"]

Node = Expr | Stmt | Program | Tensor | Buffer


def same_structure(a: Node, b: Node) -> bool:
    """True if *a* and *b* have the same shape, operators, constants and bindings.

    Variables bound inside (loops, lets, axes) correspond by position, whatever their names; so do
    buffers allocated inside, if their layouts agree.  Free variables and free buffers must be the
    same objects, and so must tensors that *a* and *b* read if they are expressions.  Other tensors
    compare by definition, placeholders by shape, type and constant flag.

    **Cost:** linear in the number of distinct node pairs.

    >>> from ansorpy.ir.expr import Var
    >>> i = Var("i")
    >>> same_structure(i + 1, i + 1), same_structure(i + 1, Var("i") + 1)
    (True, False)
    """
    if a is b:
        return True
    quick = _quickly(a, b)
    return _Comparison(isinstance(a, Expr)).same(a, b) if quick is None else quick


def _quickly(a: Node, b: Node) -> bool | None:
    """The same for small expressions that bind no variables; None for all others.

    Most comparisons are of two indices.  They need no record of pairs and of bound variables.
    """
    waiting: list[tuple[Any, Any]] = [(a, b)]
    for _ in range(_SMALL):
        if not waiting:
            return True
        x, y = waiting.pop()
        if x is y:
            continue
        kind = type(x)
        if kind is not type(y):
            return False
        label = LABELS.get(kind)
        if label is None or kind is Reduce:
            return False if isinstance(x, Var) else None
        inner, others = children(x), children(y)
        if len(inner) != len(others) or label(x) != label(y):
            return False
        waiting += zip(inner, others, strict=True)
    return None


_SMALL = 500
"""Pairs of expressions to look at before shared ones are worth recording."""


class _Comparison:
    def __init__(self, is_of_expressions: bool) -> None:
        self._is_of_expressions = is_of_expressions
        self._bound: dict[Any, Any] = {}
        self._reverse: dict[Any, Any] = {}
        self._equal: set[tuple[int, int]] = set()

    def same(self, a: object, b: object) -> bool:
        if self._is_of_expressions and isinstance(a, Tensor):
            return a is b
        if isinstance(a, Var | Buffer | PlaceholderOp):
            return self._same_name(a, b)
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            assert isinstance(b, tuple)
            return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
        if not isinstance(a, Expr | Stmt | Program | Tensor):
            return _same_number(a, b)
        key = (id(a), id(b))
        if key in self._equal:
            return True
        compare: Callable[[Any, Any, Any], bool] = _SPECIAL.get(type(a), _Comparison._fields)
        equal = compare(self, a, b)
        if equal:
            self._equal.add(key)
        return equal

    def bind(self, a: object, b: object) -> None:
        """Treat *a* and *b* as equal from here on, in both directions."""
        self._bound[a], self._reverse[b] = b, a

    def _same_name(self, a: Any, b: Any) -> bool:
        if a in self._bound or b in self._reverse:
            return self._bound.get(a) is b and self._reverse.get(b) is a
        if a is b:
            self.bind(a, b)
            return True
        if not (isinstance(a, PlaceholderOp) and isinstance(b, PlaceholderOp)):
            return False
        self.bind(a, b)
        return (a.shape, a.dtype, a.constant) == (b.shape, b.dtype, b.constant)

    def _fields(self, a: Any, b: Any) -> bool:
        names = a.__match_args__
        return all(self.same(getattr(a, name), getattr(b, name)) for name in names)

    def _for(self, a: For, b: For) -> bool:
        self.bind(a.var, b.var)
        return (a.extent, a.kind) == (b.extent, b.kind) and self.same(a.body, b.body)

    def _let(self, a: Let, b: Let) -> bool:
        if not self.same(a.value, b.value):
            return False
        self.bind(a.var, b.var)
        return self.same(a.body, b.body)

    def _alloc(self, a: Alloc, b: Alloc) -> bool:
        self.bind(a.buffer, b.buffer)
        return _like(a.buffer, b.buffer) and self.same(a.body, b.body)

    def _program(self, a: Program, b: Program) -> bool:
        if len(a.params) != len(b.params):
            return False
        for p, q in zip(a.params, b.params, strict=True):
            self.bind(p.buffer, q.buffer)
            if p.role is not q.role or not _like(p.buffer, q.buffer):
                return False
        return self.same(a.body, b.body)

    def _reduce(self, a: Reduce, b: Reduce) -> bool:
        return a.kind is b.kind and self._axes(a.axes, b.axes) and self.same(a.source, b.source)

    def _compute(self, a: ComputeOp, b: ComputeOp) -> bool:
        if (a.shape, a.routine) != (b.shape, b.routine):
            return False
        return self._axes(a.axes, b.axes) and self.same(a.body, b.body)

    def _axes(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        if [(x.extent, x.kind) for x in a] != [(x.extent, x.kind) for x in b]:
            return False
        for x, y in zip(a, b, strict=True):
            self.bind(x, y)
        return True


def _like(a: Buffer, b: Buffer) -> bool:
    return _layout(a) == _layout(b)


def _layout(b: Buffer) -> tuple[object, ...]:
    """The properties that determine the place and the type of an element."""
    return b.shape, b.dtype, b.scope, b.steps, b.fragment, b.swizzle


def _same_number(a: object, b: object) -> bool:
    """True if *a* and *b* are equal; floats are equal to those of the same bits, and NaN to NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()
    return bool(a == b)


_SPECIAL: dict[type, Any] = {
    For: _Comparison._for, Let: _Comparison._let, Alloc: _Comparison._alloc,
    Program: _Comparison._program, Reduce: _Comparison._reduce, ComputeOp: _Comparison._compute,
}  # fmt: skip
