"""Texts that name dimensions: flags, and expressions as exporters write them: ``past + seq``.

Expressions are parsed as Python's syntax, and never evaluated by Python.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import reduce
from shlex import quote

from ansorpy.frontend.onnx.ratio import Ratio, ratio_of
from ansorpy.ir.extents import Extent, dim, extreme
from ansorpy.ir.symbols import SizeOp

__all__ = ["dim_flags", "extent_of", "names_in"]

_LONGEST = 500
"""Longer texts are no expressions that an exporter wrote, and could be nested deeply."""
_LARGEST = 1 << 40
_LARGEST_FRACTION = 1 << 20
"""Numbers of larger denominators, such as 0.7, are no arithmetic: their products are rounded."""
_MOST_FACTORS = 8
"""The largest power; powers of powers would be products of thousands of terms."""
_ROUNDED = (
    "floor", "ceil", "ceiling", "trunc", "int", "floortoint", "ceiltoint", "trunctoint",
)  # fmt: skip
_QUOTIENTS = ("inttruediv", "floattruediv", "cleandiv")
_REMAINDERS = ("mod", "pythonmod")
_EXTREMES = {"min": SizeOp.MIN, "max": SizeOp.MAX}


def dim_flags(sizes: Mapping[str, object]) -> str:
    """How to give the dimensions with these names *sizes*; empty if there are none."""
    flags = " ".join(f"--dim {quote(f'{name}={size}')}" for name, size in sizes.items())
    return flags and f"{flags} (dims= in Python)"


class _NotArithmetic(Exception):
    """The text is something else than the arithmetic of dimensions."""


def names_in(text: str) -> frozenset[str] | None:
    """The names of the dimensions in the expression *text*; None if it is not one."""
    found: set[str] = set()

    class _Seen(dict[str, Extent]):
        def __missing__(self, name: str) -> Extent:
            found.add(name)
            return dim(name, 0, _LARGEST)

    try:
        _Evaluator(_Seen()).extent(_parsed(text))
    except _NotArithmetic:
        return None
    return frozenset(found)


def extent_of(text: str, sizes: Mapping[str, Extent]) -> Extent:
    """The expression *text*, which :func:`names_in` accepts, where dimensions have *sizes*."""
    return _Evaluator(sizes).extent(_parsed(text))


def _parsed(text: str) -> ast.expr:
    try:
        if len(text) > _LONGEST:
            raise _NotArithmetic
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _NotArithmetic from None


class _Evaluator:
    """Evaluates parsed expressions where dimensions have *sizes*."""

    def __init__(self, sizes: Mapping[str, Extent]) -> None:
        self._sizes = sizes

    def extent(self, e: ast.expr) -> Extent:
        return self._ratio(e).floor()

    def _ratio(self, e: ast.expr) -> Ratio:
        match e:
            case ast.Name(id=name):
                return ratio_of(self._sizes[name])
            case ast.Constant(value=int() | float() as number) if abs(number) < _LARGEST:
                found = ratio_of(number)
                if found.below <= _LARGEST_FRACTION:
                    return found
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._ratio(operand).times(Ratio(-1))
            case ast.BinOp(left=left, op=ast.Pow()) if any(map(_is_power, ast.walk(left))):
                raise _NotArithmetic
            case ast.BinOp(left=left, op=op, right=right):
                return _combined(self._ratio(left), op, self._ratio(right))
            case ast.Call(func=ast.Name(id=name), args=[*args], keywords=[]):
                return self._called(name.lower(), [self._ratio(arg) for arg in args])
        raise _NotArithmetic

    def _called(self, name: str, args: list[Ratio]) -> Ratio:
        if name in _ROUNDED and len(args) == 1:
            up = name.startswith("ceil")
            return Ratio(args[0].ceil() if up else args[0].floor())
        if name == "tofloat" and len(args) == 1:
            return args[0]
        if name in (*_QUOTIENTS, *_REMAINDERS) and len(args) == 2:
            return _combined(args[0], ast.Mod() if name in _REMAINDERS else ast.Div(), args[1])
        if name not in _EXTREMES or not args or any(arg.below != 1 for arg in args):
            raise _NotArithmetic
        found, *others = (arg.above for arg in args)
        for other in others:
            found = extreme(_EXTREMES[name], found, other)
        return Ratio(found)


def _combined(a: Ratio, op: ast.operator, b: Ratio) -> Ratio:
    match op:
        case ast.Add():
            return a.plus(b)
        case ast.Sub():
            return a.plus(b.times(Ratio(-1)))
        case ast.Mult():
            return a.times(b)
        case ast.Pow():
            return _power(a, b)
    quotient = a.over(b)
    if quotient is None:
        raise _NotArithmetic
    match op:
        case ast.Div():
            return quotient
        case ast.FloorDiv():
            return Ratio(quotient.floor())
        case ast.Mod():
            return a.plus(b.times(Ratio(-quotient.floor())))
    raise _NotArithmetic


def _is_power(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


def _power(a: Ratio, b: Ratio) -> Ratio:
    count = b.above
    if not isinstance(count, int) or b.below != 1 or not 0 <= count <= _MOST_FACTORS:
        raise _NotArithmetic
    return reduce(Ratio.times, [a] * count, Ratio(1))
