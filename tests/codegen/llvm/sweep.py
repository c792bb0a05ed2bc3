"""Elementary functions as machine code, and their errors in units of the last place.

``python -m tests.campaigns numbers`` sweeps every argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS
from ansorpy.ir.expr import BinaryOp, Expr, Function, const
from tests.codegen.programs import Array, Compiled, at, buffer, nest, program, put

__all__ = ["BLOCK", "FUNCTIONS", "PAIRS", "Errors", "Row", "Swept", "errors"]

BLOCK = 1 << 15
"""Arguments of one call: all arrays of a comparison fit into a core's cache."""
_CORRECT = 0.5
_FAR = 1000
_FEW = 256
"""Enough where all results are rounded correctly: none then errs by more than half a unit."""


@dataclass(frozen=True)
class Row:
    """A function: as an expression, exactly in float64, and the largest error stated, in ULP.

    ``largest`` is the magnitude of the arguments up to which the error is stated.  A *composed*
    function is several operations, of which each is rounded to the type.
    """

    build: Callable[..., Expr]
    exact: Callable[..., Array]
    stated: float
    largest: float = np.inf
    composed: bool = False


def _stated(fn: Function | BinaryOp) -> float:
    return APPROXIMATIONS[fn, DType.FLOAT32].error


def _gelu(x: Expr) -> Expr:
    return x * 0.5 * (b.erf(x * float(np.sqrt(0.5))) + 1.0)


FUNCTIONS: dict[str, Row] = {
    "exp": Row(b.exp, np.exp, _stated(Function.EXP)),
    "log": Row(b.log, np.log, _stated(Function.LOG)),
    "tanh": Row(b.tanh, np.tanh, _stated(Function.TANH)),
    "erf": Row(b.erf, special.erf, _stated(Function.ERF)),
    "sin": Row(b.sin, np.sin, _stated(Function.SIN), 2.0**30),
    "cos": Row(b.cos, np.cos, _stated(Function.COS), 2.0**30),
    "rsqrt": Row(b.rsqrt, lambda x: 1 / np.sqrt(x), _stated(Function.RSQRT)),
    "sqrt": Row(b.sqrt, np.sqrt, _CORRECT),
    "1/x": Row(lambda x: const(1.0, x.dtype) / x, lambda x: 1 / x, _CORRECT),
    "sigmoid": Row(b.sigmoid, special.expit, 3.0, composed=True),
    "gelu": Row(_gelu, lambda x: x * 0.5 * special.erfc(-x * np.sqrt(0.5)), 5.0, composed=True),
    "floor": Row(b.floor, np.floor, 0.0),
    "ceil": Row(b.ceil, np.ceil, 0.0),
    "round": Row(b.round, np.rint, 0.0),
    "to float16": Row(lambda x: x.astype("float16"), lambda x: x, _CORRECT),
    "to bfloat16": Row(lambda x: x.astype("bfloat16"), lambda x: x, _CORRECT),
}
"""Functions of one argument by name."""
PAIRS: dict[str, Row] = {
    "**": Row(lambda x, y: x**y, np.power, _stated(BinaryOp.POW)),
    "/": Row(lambda x, y: x / y, np.divide, _CORRECT),
}
"""Functions of two arguments by name."""


@dataclass(frozen=True)
class Errors:
    """The largest error in units of the last place, its arguments, and wrong special values.

    Special are NaN, infinities and zeros, whose sign counts.
    """

    worst: float
    where: tuple[float, ...]
    wrong: int


class Swept:
    """One function compiled for blocks of ``BLOCK`` elements of a type."""

    def __init__(self, name: str, dtype: DType = DType.FLOAT32) -> None:
        self.name = name
        self.row = FUNCTIONS.get(name) or PAIRS[name]
        sources = [buffer(f"x{n}", BLOCK, dtype=dtype) for n in range(2 if name in PAIRS else 1)]
        self.result = self.row.build(*(at(x, 0) for x in sources)).dtype
        y = buffer("y", BLOCK, dtype=self.result)
        body = nest(
            f"v{BLOCK}", lambda i: put(y, (i,), self.row.build(*(at(x, i) for x in sources)))
        )
        self._compiled = Compiled(program(body, sources, [y]))
        self._found = np.empty(BLOCK, self.result.numpy)
        self._steps = np.empty(BLOCK, np.int32)
        # A 16-bit float is computed as float32 and rounded, which adds half a unit to its error.
        narrower = 2.0 ** (_FRACTION[self.result] - _FRACTION[DType.FLOAT32])
        is_rounded = dtype is not DType.FLOAT32 and self.row.stated > _CORRECT
        is_rounded &= not self.row.composed
        self.stated = _CORRECT + self.row.stated * narrower if is_rounded else self.row.stated

    def block(self, *x: Array) -> Errors:
        """The errors at ``BLOCK`` arguments.

        Usually only the results furthest from the exact one, in steps between numbers, are
        examined: these have the largest error.
        """
        self._compiled(*x, self._found)
        with np.errstate(all="ignore"):
            if self.row.largest < np.inf and np.abs(x[0]).min() > self.row.largest:
                return Errors(0.0, (), 0)
            wide = [v.astype(np.float64) for v in x]
            exact = self.row.exact(*wide)
            some = self._furthest(x[0], exact)
            off, wrong = errors(self._found[some], exact[some], self.result)
            if self.name == "sigmoid":  # 0 instead of denormals
                least = 2 * self.result.normal[0]
                below = (self._found[some] >= 0) & (self._found[some] < least)
                off[(exact[some] < least) & below] = 0.0
            if self.name == "gelu":
                self._cancelling(wide[0][some], exact[some], self._found[some], off)
            if self.row.largest < np.inf:
                stated = np.abs(wide[0][some]) <= self.row.largest
                off[~stated] = 0.0
                wrong &= stated | ~np.isfinite(wide[0][some])
        worst = int(off.argmax()) if off.size else 0
        where = tuple(float(v[some][worst]) for v in x) if off.size else ()
        return Errors(float(off.max(initial=0.0)), where, int(wrong.sum()))

    def _furthest(self, x: Array, exact: Array) -> slice | Array:
        """Elements one of which has the largest error: all if they are special or far off."""
        if self.result is not DType.FLOAT32 or (self.name == "gelu" and np.signbit(x).any()):
            return slice(None)
        rounded = exact.astype(np.float32)
        np.subtract(self._found.view(np.int32), rounded.view(np.int32), out=self._steps)
        low, high = int(self._steps.min()), int(self._steps.max())
        most = max(-low, high)
        if most == 0:
            return slice(_FEW)
        if most < _FAR:
            return np.flatnonzero((self._steps == most) | (self._steps == -most))
        if np.isnan(rounded).all() and np.isnan(self._found).all():
            return slice(0)
        return slice(None)

    def _cancelling(self, x: Array, exact: Array, found: Array, off: Array) -> None:
        """State errors in units of the last place of negative x, where 1 + erf(x) cancels."""
        below = np.isfinite(x) & (x < 0)
        lost = np.abs(found[below].astype(np.float64) - exact[below])
        off[below] = lost / _unit(x[below].astype(np.float32), self.result)


def errors(found: Array, exact: Array, dtype: DType) -> tuple[Array, Array]:
    """The error of each element in units of the last place; and which special values are wrong.

    Units are those of the *exact* (float64) result rounded to *dtype*.  Values that are special on
    one side only are wrong; what underflows may be zero or the least denormal number.
    """
    rounded = exact.astype(np.float32) if dtype is DType.FLOAT32 else dtype.rounded(exact)
    rounded, found = rounded.astype(np.float32), found.astype(np.float32)
    off = np.abs(found.astype(np.float64) - exact) / _unit(rounded, dtype)
    finite = np.isfinite(rounded)
    alike = np.where(np.isnan(rounded), np.isnan(found), found == rounded)
    wrong = np.where(finite, ~np.isfinite(found), ~alike)
    zero = (rounded == 0) & (found == 0)
    wrong |= zero & (np.signbit(rounded) != np.signbit(found))
    return np.where(finite & np.isfinite(found), off, 0.0), wrong


def _unit(rounded: Array, dtype: DType) -> Array:
    """The unit of the last place of float32 numbers that *dtype* represents."""
    power = (rounded.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)
    least = dtype.normal[0] * dtype.epsilon
    found: Array = np.maximum(power * np.float64(dtype.epsilon), least)
    return found


_FRACTION = {
    dtype: int(-np.log2(dtype.epsilon)) for dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
}
