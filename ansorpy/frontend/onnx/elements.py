"""Arithmetic on values that follow from sizes: arrays whose elements are extents.

Exporters compute shapes by the operators of the network.  An array of objects holds such a value:
extents for integers, :class:`~ansorpy.frontend.onnx.ratio.Ratio` for floats, as far as these are
exact, and booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.ratio import Ratio, ratio_of
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import (
    Cast,
    Concat,
    Elementwise,
    Fn,
    Gather,
    Movement,
    Op,
    Reduce,
    ReduceKind,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Extent, Symbolic, extreme, least, most
from ansorpy.ir.symbols import SizeOp

__all__ = ["Elements", "elements_of", "evaluated", "numbers_of"]

Elements: TypeAlias = NDArray[Any]

MOST_ELEMENTS = 1 << 10
"""Of a value that holds sizes; larger ones are data."""
_EXACT = {DType.FLOAT32: 1 << 24, DType.FLOAT64: 1 << 53}
"""Below this, a float type has every integer, and quotients of integers round down correctly."""


class _Undecided(Exception):
    """The result is no extent, or differs between sizes in a way that no extent expresses."""


def elements_of(array: Array) -> Elements | None:
    """The elements of a constant; None if they are too many, or not finite."""
    if array.size > MOST_ELEMENTS or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return None
    plain: Elements = np.asarray(array).astype(object)
    return _each(ratio_of, plain) if array.dtype.kind == "f" else plain


def numbers_of(elements: Elements, dtype: DType) -> Array | None:
    """*elements* as a constant; None if one of them depends on a dimension."""
    plain: list[Any] = []
    for e in elements.flat:
        number, below = (e.above, e.below) if isinstance(e, Ratio) else (e, 1)
        if isinstance(number, Symbolic):
            return None
        plain.append(number if below == 1 else number / below)
    return np.asarray(plain, dtype.numpy).reshape(elements.shape)


def evaluated(op: Op, operands: Sequence[Elements], dtype: DType) -> Elements | None:
    """``op(*operands)``, of type *dtype*; None if it is no array of extents."""
    try:
        found = _computed(op, operands, dtype)
        if dtype is not DType.BOOL:
            _each(lambda e: _demand_held(e, dtype), found)
    except _Undecided:
        return None
    return found if found.size <= MOST_ELEMENTS else None


def _computed(op: Op, operands: Sequence[Elements], dtype: DType) -> Elements:
    match op:
        case Movement() | Concat():
            found = op.evaluate(operands)
            if found is not None:
                return np.asarray(found, object)
        case Gather(axis=axis) if not any(isinstance(i, Symbolic) for i in operands[1].flat):
            data, places = operands
            return np.asarray(np.take(data, places.astype(np.int64), axis), object)
        case Cast():
            return _each(_CAST[dtype.is_float, dtype is DType.BOOL], operands[0])
        case Reduce(kind=kind, axes=axes, keepdims=keepdims):
            return _reduced(_REDUCED[kind, dtype.is_float], operands[0], axes, keepdims)
        case Elementwise(fn=fn, params=()) if (fn, _is_float(operands[-1])) in _FUNCTIONS:
            return _each(_FUNCTIONS[fn, _is_float(operands[-1])], *operands)
    raise _Undecided


def _each(fn: Callable[..., Any], *operands: Elements) -> Elements:
    """*fn* of the elements of the broadcast operands."""
    if not all(operand.size for operand in operands):
        return np.zeros(np.broadcast_shapes(*(o.shape for o in operands)), object)
    return np.asarray(np.frompyfunc(fn, len(operands), 1)(*operands), object)


def _reduced(fn: Callable[..., Any], x: Elements, axes: Sequence[int], keepdims: bool) -> Elements:
    kept = [d for d in range(x.ndim) if d not in axes]
    rows = x.transpose([*kept, *axes]).reshape([x.shape[d] for d in kept] + [-1])
    shape = [1 if d in axes else e for d, e in enumerate(x.shape)]
    found = np.zeros(rows.shape[:-1], object)
    for place in np.ndindex(found.shape):
        if not rows.shape[-1]:
            raise _Undecided
        found[place] = reduce(fn, rows[place])
    return found.reshape(shape) if keepdims else found


def _above(e: Any) -> Any:
    return e.above if isinstance(e, Ratio) else e


def _is_float(x: Elements) -> bool:
    return bool(x.size) and isinstance(x.flat[0], Ratio)


def _demand_held(e: Extent | Ratio, dtype: DType) -> None:
    """Check that *dtype* has every integer up to *e*; then quotients round to the same ones."""
    if dtype.is_float:
        high = _EXACT.get(dtype, 0) - 1
        low = -high
    else:
        low, high = dtype.limits
    if not low <= least(_above(e)) <= most(_above(e)) <= high:
        raise _Undecided


def _kept(ratio: Ratio) -> Ratio:
    """*ratio*, which floats hold without rounding."""
    if ratio.below & (ratio.below - 1):
        raise _Undecided
    return ratio


def _known(ratio: Ratio) -> Extent:
    if ratio.below != 1:
        raise _Undecided
    return ratio.above


# Integers


def _quotient(a: Extent, b: Extent) -> Extent:
    """``a / b`` rounded towards 0."""
    if most(b) < 0:
        a, b = -a, -b
    if least(b) < 1:
        raise _Undecided
    if least(a) >= 0:
        return a // b
    if most(a) <= 0:
        return -((-a) // b)
    raise _Undecided


def _modulo(a: Extent, b: Extent) -> Extent:
    """The remainder with the sign of *b*."""
    if least(b) < 1:
        raise _Undecided
    return a % b


def _remainder(a: Extent, b: Extent) -> Extent:
    """The remainder with the sign of *a*."""
    return a - _quotient(a, b) * b


def _is_less(a: Extent, b: Extent) -> bool:
    if most(a - b) < 0:
        return True
    if least(a - b) >= 0:
        return False
    raise _Undecided


def _is_equal(a: Extent, b: Extent) -> bool:
    if a - b == 0:
        return True
    if least(a - b) > 0 or most(a - b) < 0:
        return False
    raise _Undecided


def _smaller(a: Extent, b: Extent) -> Extent:
    return extreme(SizeOp.MIN, a, b)


def _larger(a: Extent, b: Extent) -> Extent:
    return extreme(SizeOp.MAX, a, b)


def _size(a: Extent) -> Extent:
    return _larger(a, -a)


def _sign(a: Extent) -> int:
    return int(_is_less(0, a)) - int(_is_less(a, 0))


def _chosen(condition: bool, a: Any, b: Any) -> Any:
    return a if condition else b


# Floats


def _sum(a: Ratio, b: Ratio) -> Ratio:
    return _kept(a).plus(_kept(b))


def _difference(a: Ratio, b: Ratio) -> Ratio:
    return _kept(a).plus(_kept(b).times(Ratio(-1)))


def _product(a: Ratio, b: Ratio) -> Ratio:
    return _kept(_kept(a).times(_kept(b)))


def _division(a: Ratio, b: Ratio) -> Ratio:
    found = _kept(a).over(_kept(b))
    if found is None:
        raise _Undecided
    return found


def _smaller_float(a: Ratio, b: Ratio) -> Ratio:
    return Ratio(_smaller(_known(a), _known(b)))


def _larger_float(a: Ratio, b: Ratio) -> Ratio:
    return Ratio(_larger(_known(a), _known(b)))


def _truncated(a: Ratio) -> Extent:
    if least(a.above) >= 0:
        return a.floor()
    if most(a.above) <= 0:
        return a.ceil()
    raise _Undecided


_CAST: Mapping[tuple[bool, bool], Callable[[Any], Any]] = {
    (True, False): lambda a: a if isinstance(a, Ratio) else ratio_of(a),
    (False, False): lambda a: _truncated(a) if isinstance(a, Ratio) else a,
    (False, True): lambda a: not _is_equal(_above(a), 0),
}
"""Conversions, by whether the result is a float, and whether it is a boolean."""

_REDUCED: Mapping[tuple[ReduceKind, bool], Callable[..., Any]] = {
    (ReduceKind.SUM, False): lambda a, b: a + b,
    (ReduceKind.PROD, False): lambda a, b: a * b,
    (ReduceKind.MIN, False): _smaller,
    (ReduceKind.MAX, False): _larger,
    (ReduceKind.SUM, True): _sum,
    (ReduceKind.PROD, True): _product,
    (ReduceKind.MIN, True): _smaller_float,
    (ReduceKind.MAX, True): _larger_float,
}

_FUNCTIONS: Mapping[tuple[Fn, bool], Callable[..., Any]] = {
    (Fn.ADD, False): lambda a, b: a + b,
    (Fn.SUB, False): lambda a, b: a - b,
    (Fn.MUL, False): lambda a, b: a * b,
    (Fn.DIV, False): _quotient,
    (Fn.MOD, False): _modulo,
    (Fn.REMAINDER, False): _remainder,
    (Fn.MIN, False): _smaller,
    (Fn.MAX, False): _larger,
    (Fn.NEG, False): lambda a: -a,
    (Fn.ABS, False): _size,
    (Fn.SIGN, False): _sign,
    (Fn.EQUAL, False): _is_equal,
    (Fn.LESS, False): _is_less,
    (Fn.LESS_EQUAL, False): lambda a, b: not _is_less(b, a),
    (Fn.WHERE, False): _chosen,
    (Fn.WHERE, True): _chosen,
    (Fn.ADD, True): _sum,
    (Fn.SUB, True): _difference,
    (Fn.MUL, True): _product,
    (Fn.DIV, True): _division,
    (Fn.NEG, True): lambda a: a.times(Ratio(-1)),
    (Fn.MIN, True): _smaller_float,
    (Fn.MAX, True): _larger_float,
    (Fn.EQUAL, True): lambda a, b: _is_equal(_known(a), _known(b)),
    (Fn.LESS, True): lambda a, b: _is_less(_known(a), _known(b)),
    (Fn.LESS_EQUAL, True): lambda a, b: not _is_less(_known(b), _known(a)),
    (Fn.FLOOR, True): lambda a: Ratio(a.floor()),
    (Fn.CEIL, True): lambda a: Ratio(a.ceil()),
}
"""Functions of the elements, by whether the last operand is a float."""
