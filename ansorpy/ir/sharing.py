"""Finds repeated parts of long expressions that are worth a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansorpy.ir.expr import Expr, children

__all__ = ["LONG", "SHORT", "operands_first", "shared_parts"]

LONG = 1000
"""Up to this many nodes, an expression is written out in full."""
SHORT = 8
"""A part of fewer nodes than this gets no name."""


def shared_parts(roots: Sequence[Expr]) -> list[Expr]:
    """Parts of *roots* that are used in more than one place, operands before their users.

    The list is empty if *roots* written out are short.  With these parts named, the text grows
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
    """Each distinct node once, after its operands."""
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
