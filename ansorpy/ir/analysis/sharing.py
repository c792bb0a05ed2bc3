"""Common subexpressions: merge equal parts into one node, and find the parts worth a name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import is_
from typing import TypeVar

from ansorpy.ir.expr import Expr, children
from ansorpy.ir.operands import LABELS, with_operands

__all__ = ["LONG", "SHORT", "operands_first", "post_order", "shared_parts", "unique_nodes"]

T = TypeVar("T", bound=Hashable)

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
    return post_order(roots, children)


def post_order(roots: Sequence[T], below: Callable[[T], Sequence[T]]) -> Iterator[T]:
    """Yield each node that is reached from *roots* once, after those *below* it, depth first."""
    seen: set[T] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(below(node)))


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
        own, label = children(e), LABELS.get(type(e))
        parts = tuple([kept[part] for part in own])
        value: Hashable = e if label is None else (type(e), label(e), parts)
        same = known.get(value)
        if same is None:
            is_old = all(map(is_, parts, own))
            same = known[value] = e if is_old else with_operands(e, parts)
        kept[e] = same
    return kept[root]
