"""Common subexpressions: merge equal parts into one node, and find the parts worth a name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ansorpy.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    children,
)

__all__ = ["LONG", "SHORT", "operands_first", "shared_parts", "unique_nodes"]

LONG = 1000
"""An expression of up to this many nodes is printed in full."""
SHORT = 8
"""A part with fewer nodes than this gets no name."""


def shared_parts(roots: Sequence[Expr]) -> list[Expr]:
    """Parts of *roots* that are used in more than one place, operands before their users.

    The list is empty if the text of *roots* is short.  If these parts are named, the text grows
    with the number of distinct nodes.  **Cost:** linear in that number.

    >>> from ansorpy.ir.expr import Var
    >>> e = Var("i") + 1
    >>> for _ in range(40):
    ...     e = e * e
    >>> len(shared_parts([e])), len(shared_parts([Var("i") + 1]))
    (13, 0)
    """
    order = list(operands_first(roots))
    whole: dict[Expr, int] = {}
    uses: dict[Expr, int] = dict.fromkeys(order, 0)
    for e in order:
        whole[e] = 1 + sum(whole[part] for part in children(e))
        for part in children(e):
            uses[part] += 1
    for root in roots:
        uses[root] += 1
    if sum(whole[root] for root in roots) <= LONG:
        return []
    found: list[Expr] = []
    left: dict[Expr, int] = {}
    for e in order:
        left[e] = 1 + sum(left[part] for part in children(e))
        if uses[e] > 1 and left[e] >= SHORT:
            found.append(e)
            left[e] = 1
    return found


def operands_first(roots: Sequence[Expr]) -> Iterator[Expr]:
    """Yield each distinct node once, after its operands."""
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        e, is_ready = stack.pop()
        if is_ready:
            yield e
        elif e not in seen:
            seen.add(e)
            stack.append((e, True))
            stack.extend((part, False) for part in reversed(children(e)))


def unique_nodes(root: Expr) -> Expr:
    """*root* with equal parts merged into one node; *root* itself if there is nothing to merge.

    Variables, and the tensors that loads read, are equal only if they are the same objects.
    **Cost:** linear in the number of distinct nodes.

    >>> from ansorpy.ir.expr import Var
    >>> i = Var("i")
    >>> square = unique_nodes((i + 1) * (i + 1))
    >>> square.a is square.b
    True
    """
    kept: dict[Expr, Expr] = {}
    known: dict[Hashable, Expr] = {}
    for e in operands_first([root]):
        own = children(e)
        parts = tuple([kept[part] for part in own])
        value = _value(e, parts)
        same = known.get(value)
        if same is None:
            is_new = any(part is not old for part, old in zip(parts, own, strict=True))
            same = known[value] = _rebuilt(e, parts) if is_new else e
        kept[e] = same
    return kept[root]


def _value(e: Expr, parts: tuple[Expr, ...]) -> Hashable:
    """A key that is equal for equal expressions; *parts* are the operands of *e*."""
    match e:
        case Const(value, kind):
            # Floats that differ only in sign are different; so are 0 and False.
            return Const, kind, value.hex() if isinstance(value, float) else (type(value), value)
        case Binary(op):
            return Binary, op, parts
        case Compare(cmp):
            return Compare, cmp, parts
        case Call(fn):
            return Call, fn, parts
        case Select():
            return Select, parts
        case Cast(to):
            return Cast, to, parts
        case Load(source):
            return Load, source, parts
        case Reduce(combiner, _, axes):
            return Reduce, combiner, axes, parts
        case _:
            return e


def _rebuilt(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """*e* with *parts* as its operands."""
    match e:
        case Binary(op):
            return Binary(op, parts[0], parts[1])
        case Compare(cmp):
            return Compare(cmp, parts[0], parts[1])
        case Call(fn):
            return Call(fn, parts)
        case Select():
            return Select(parts[0], parts[1], parts[2])
        case Cast(to):
            return Cast(to, parts[0])
        case Load(source):
            return Load(source, parts)
        case Reduce(kind, _, axes):
            return Reduce(kind, parts[0], axes)
        case _:
            raise TypeError(f"{type(e).__name__} has no operands")
