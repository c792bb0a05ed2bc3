"""Asks isl about index expressions; isl is loaded with the first question."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.ir.expr import Axis, Binary, BinaryOp, Call, Const, Expr, Function

__all__ = ["is_injective"]

# Basic steps isl may take for one question before it counts as undecided: those asked so far need
# some thousands; 10 million take about 50 ms.
MAX_OPERATIONS = 2_000_000


def is_injective(indices: Sequence[Expr], axes: Sequence[Axis]) -> bool | None:
    """True when no two points of *axes* have the same *indices*; None when isl cannot tell."""
    names = {axis: f"a{n}" for n, axis in enumerate(axes)}
    spelled = [_spell(index, names) for index in indices]
    if any(s is None for s in spelled):
        return None
    inside = " and ".join(f"0 <= {names[a]} < {a.extent}" for a in axes) or "true"
    point = ", ".join(names.values())
    image = ", ".join(s for s in spelled if s is not None)
    return _ask(f"{{ [{point}] -> [{image}] : {inside} }}")


def _ask(relation: str) -> bool | None:
    """Whether *relation* is injective; None when isl needs too many steps."""
    import islpy as isl

    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        return bool(isl.Map(relation).is_injective())
    except isl.Error:
        return None
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _spell(e: Expr, names: dict[Axis, str]) -> str | None:
    """*e* in isl's notation; None when it cannot be expressed there."""
    match e:
        case Axis():
            return names.get(e)
        case Const(value, _):
            return str(int(value))
        case Call(Function.NEG, (x,)):
            inner = _spell(x, names)
            return None if inner is None else f"(-{inner})"
        case Binary(op, a, b):
            left, right = _spell(a, names), _spell(b, names)
            if left is None or right is None:
                return None
            return _spell_binary(op, left, right, b, constant=isinstance(a, Const))
        case _:
            return None


def _spell_binary(op: BinaryOp, left: str, right: str, b: Expr, *, constant: bool) -> str | None:
    if op in (BinaryOp.ADD, BinaryOp.SUB):
        return f"({left} {op.value} {right})"
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        return f"{op.value}({left}, {right})"
    if op is BinaryOp.MUL and (constant or isinstance(b, Const)):
        return f"({left} * {right})"
    if isinstance(b, Const) and b.value > 0:
        if op is BinaryOp.FLOORDIV:
            return f"floor(({left}) / {right})"
        if op is BinaryOp.FLOORMOD:
            return f"(({left}) mod {right})"
    return None
