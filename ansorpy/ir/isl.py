"""Questions to isl about index expressions.  isl is loaded when the first one is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ansorpy.ir.builders import minimum
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Call, Const, Expr, Function, const

__all__ = ["is_injective", "touched_extent"]

# Basic steps isl may take for one question before we take the conservative answer instead: a
# question of the definitions we have met needs some thousands; 10 million are about 50 ms.
MAX_OPERATIONS = 2_000_000
T = TypeVar("T")


def is_injective(indices: Sequence[Expr], axes: Sequence[Axis]) -> bool | None:
    """True when no two points of *axes* have the same *indices*; None when isl cannot tell."""
    names = {axis: f"a{n}" for n, axis in enumerate(axes)}
    spelled = [_spell(index, names) for index in indices]
    if any(s is None for s in spelled):
        return None
    inside = " and ".join(f"0 <= {names[a]} < {a.extent}" for a in axes) or "true"
    point = ", ".join(names.values())
    image = ", ".join(s for s in spelled if s is not None)
    return _ask(
        lambda isl: bool(isl.Map(f"{{ [{point}] -> [{image}] : {inside} }}").is_injective())
    )


def touched_extent(index: Expr, axes: Sequence[Axis]) -> tuple[Expr, bool] | None:
    """Largest number of elements between the first and the last that a box of *axes* touches.

    Returns the number over the sizes of the box, an axis standing for its size, and whether
    some box attains it; None when the answer is not one quasi-affine expression (cut off at
    the range of *index*), or *index* is nothing isl can be asked about.
    """
    used = [axis for axis in axes if _occurs(axis, index)]
    first = _spell(index, {axis: f"p{n}" for n, axis in enumerate(used)})
    second = _spell(index, {axis: f"q{n}" for n, axis in enumerate(used)})
    if first is None or second is None:
        return None
    difference = f"({first}) - ({second}) + 1"

    def answer(isl: Any) -> tuple[Expr, bool] | None:
        anywhere = _largest(isl, difference, used, inside=False)
        form = _only_piece(anywhere)
        if form is None:
            return None
        whole = _largest(isl, difference, used, inside=True)
        limit = whole.max_val()
        cut = anywhere.min(isl.PwAff(f"{{ [({limit})] }}").align_params(anywhere.get_space()))
        exact = whole.is_equal(cut.intersect_params(whole.params()))
        return minimum(_form(isl, form, used), int(limit.to_python())), bool(exact)

    return _ask(answer)


def _largest(isl: Any, difference: str, axes: Sequence[Axis], *, inside: bool) -> Any:
    """The largest *difference* for each size of the box, which lies *inside* or anywhere."""
    sizes = ", ".join(f"s{n}" for n in range(len(axes)))
    points = ", ".join(f"o{n}, p{n}, q{n}" for n in range(len(axes)))
    limits = [f"1 <= s{n} <= {axis.extent}" for n, axis in enumerate(axes)]
    for n, axis in enumerate(axes):
        limits.append(f"o{n} <= p{n} < o{n} + s{n} and o{n} <= q{n} < o{n} + s{n}")
        if inside:
            limits.append(f"0 <= o{n} and o{n} + s{n} <= {axis.extent}")
    relation = isl.Map(f"[{sizes}] -> {{ [{points}] -> [{difference}] : {' and '.join(limits)} }}")
    return relation.range().dim_max(0).coalesce()


def _ask(question: Callable[[Any], T]) -> T | None:
    """The answer to *question*, None when it takes isl too long."""
    import islpy as isl

    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        return question(isl)
    except isl.Error:
        return None
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _only_piece(form: Any) -> Any:
    """The affine form of a piecewise one that has a single piece, else None."""
    pieces = form.get_pieces()
    return pieces[0][1] if len(pieces) == 1 else None


def _form(isl: Any, form: Any, axes: Sequence[Axis]) -> Expr:
    """An isl affine form of the sizes, with its integer divisions, as an expression."""
    denominator = int(form.get_denominator_val().to_python())
    scaled = form.scale_val(isl.Val(denominator))

    def whole(value: Any) -> int:
        return int(value.to_python())

    total: Expr = const(whole(scaled.get_constant_val()))
    for n, axis in enumerate(axes):
        name = f"s{n}"
        position = scaled.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            total = total + axis * whole(scaled.get_coefficient_val(isl.dim_type.param, position))
    for n in range(scaled.dim(isl.dim_type.div)):
        factor = whole(scaled.get_coefficient_val(isl.dim_type.div, n))
        if factor:
            total = total + _form(isl, scaled.get_div(n), axes) * factor
    return total if denominator == 1 else total // denominator


def _occurs(axis: Axis, e: Expr) -> bool:
    return e is axis or any(_occurs(axis, x) for x in _operands(e))


def _operands(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Binary(_, a, b):
            return a, b
        case Call(_, args):
            return args
        case _:
            return ()


def _spell(e: Expr, names: dict[Axis, str]) -> str | None:
    """*e* in isl's notation, None when isl has none for it."""
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
