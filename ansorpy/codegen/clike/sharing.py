"""Values that a statement uses several times: computed once, before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.indices import is_index
from ansorpy.codegen.clike.writer import Writer
from ansorpy.ir.expr import Const, Expr, Load, Select, Var, children, walk

__all__ = ["named_once", "reads_twice", "sharing"]


@contextmanager
def sharing(e: Writer, *roots: Expr, is_safe: bool = False) -> Iterator[None]:
    """Inside, what *roots* use several times gets a name when it is met.

    What is read only on one side of a choice is not read before it, unless *is_safe* says that it
    may be.
    """
    before = e.known, e.repeated
    e.known, e.repeated = {}, _repeated(roots, is_safe)
    yield
    e.known, e.repeated = before


def named_once(e: Writer, expr: Expr, found: Code) -> Code:
    """*found*, the code of *expr*, or the name it gets because it is used several times."""
    if expr not in e.repeated:
        return found
    name = e.names.fresh("t")
    e.line(f"const {e.type_name(expr.dtype)} {name} = {found.text};")
    e.known[expr] = Code(name)
    return e.known[expr]


def reads_twice(side: Expr) -> bool:
    """Return whether one side of a choice uses a value several times that reads memory.

    It may be read only where that side is chosen, so it has no name outside.
    """
    return any(
        n > 1 and any(isinstance(x, Load) for x in walk(e)) for e, n in _uses((side,)).items()
    )


def _repeated(roots: tuple[Expr, ...], is_safe: bool) -> frozenset[Expr]:
    """Values used more than once that may be computed whatever is chosen."""
    uses, always = _uses(roots), _unconditional(roots)
    return frozenset(
        e for e, n in uses.items()
        if n > 1 and not isinstance(e, Const | Var) and not is_index(e)
        and (is_safe or e in always or not any(isinstance(x, Load) for x in walk(e)))
    )  # fmt: skip


def _uses(roots: tuple[Expr, ...]) -> Counter[Expr]:
    """How often each node is an operand of *roots* and of the nodes below them."""
    uses: Counter[Expr] = Counter(roots)
    pending = list(uses)
    while pending:
        for inner in _operands(pending.pop()):
            uses[inner] += 1
            if uses[inner] == 1:
                pending.append(inner)
    return uses


def _unconditional(roots: tuple[Expr, ...]) -> set[Expr]:
    """The nodes that are computed whichever sides are chosen."""
    found: set[Expr] = set()
    pending = list(roots)
    while pending:
        e = pending.pop()
        if e not in found:
            found.add(e)
            pending.extend((e.cond,) if isinstance(e, Select) else _operands(e))
    return found


def _operands(e: Expr) -> tuple[Expr, ...]:
    """The values *e* is computed from; where a load reads is an index."""
    return () if isinstance(e, Load) else tuple(children(e))
