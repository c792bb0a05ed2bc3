"""Compute a value that a statement uses several times only once, before the statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.indices import is_index
from ansorpy.codegen.clike.writer import Writer
from ansorpy.ir.expr import Const, Expr, Load, Select, Var, children, has_load

__all__ = ["named_once", "reads_twice", "sharing"]


@contextmanager
def sharing(e: Writer, *roots: Expr, is_safe: bool = False) -> Iterator[None]:
    """Within this context, values that *roots* use several times get a name when first emitted.

    A value that reads memory on only one side of a select is not computed before the select,
    unless *is_safe* says that reading it is safe.
    """
    before = e.known, e.repeated
    e.known, e.repeated = {}, _repeated(roots, is_safe)
    yield
    e.known, e.repeated = before


def named_once(e: Writer, expr: Expr, found: Code) -> Code:
    """Return *found*, the code of *expr*, or a name for it if *expr* is used several times."""
    if expr not in e.repeated:
        return found
    name = e.names.fresh("t")
    e.line(f"const {e.type_name(expr.dtype)} {name} = {found.text};")
    e.known[expr] = Code(name)
    return e.known[expr]


def reads_twice(side: Expr) -> bool:
    """Return whether *side*, one side of a select, uses a value several times that reads memory.

    Such a value may be read only if that side is chosen, so it cannot be named outside.
    """
    return any(n > 1 and has_load(e) for e, n in _uses((side,)).items())


def _repeated(roots: tuple[Expr, ...], is_safe: bool) -> frozenset[Expr]:
    """Values used more than once that are safe to compute whichever sides are chosen."""
    uses, always = _uses(roots), _unconditional(roots)
    return frozenset(
        e for e, n in uses.items()
        if n > 1 and not isinstance(e, Const | Var) and not is_index(e)
        and (is_safe or e in always or not has_load(e))
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
    """The nodes that are computed whichever sides of selects are chosen."""
    found: set[Expr] = set()
    pending = list(roots)
    while pending:
        e = pending.pop()
        if e not in found:
            found.add(e)
            pending.extend((e.cond,) if isinstance(e, Select) else _operands(e))
    return found


def _operands(e: Expr) -> tuple[Expr, ...]:
    """The values that *e* is computed from; the indices of a load do not count."""
    return () if isinstance(e, Load) else tuple(children(e))
