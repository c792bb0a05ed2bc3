"""Table of the functions that are approximated by expressions, with their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.circular import cos_single, sin_single
from ansorpy.ir.elementary.errorfunction import erf_double, erf_single
from ansorpy.ir.elementary.exponential import exp_double, exp_single, tanh_double, tanh_single
from ansorpy.ir.elementary.logarithm import log_double, log_single
from ansorpy.ir.elementary.power import power_single
from ansorpy.ir.expr import BinaryOp, Call, Expr, Function

__all__ = ["APPROXIMATIONS", "ELEMENTARY", "Approximation"]

_SINGLE, _DOUBLE = DType.FLOAT32, DType.FLOAT64


@dataclass(frozen=True)
class Approximation:
    """An expression for a function, and its largest error.

    ``error`` is in units of the last place of the exact result rounded to the type, measured
    over every float32 (samples of float64) on a machine with fused multiply-add:
    ``python -m tests.campaigns numbers``.  NaN gives NaN and infinities give their limits;
    the error also holds for denormal arguments and results.  ``domain`` is the condition under
    which the error holds, "" for all x.
    """

    build: Callable[..., Expr]
    error: float
    domain: str = ""


def _reciprocal_root(x: Expr) -> Expr:
    """1 / sqrt(x), where each of the two operations is correctly rounded."""
    return 1.0 / Call(Function.SQRT, (x,))


APPROXIMATIONS: Mapping[tuple[Function | BinaryOp, DType], Approximation] = {
    (Function.EXP, _SINGLE): Approximation(exp_single, 1.1),
    (Function.EXP, _DOUBLE): Approximation(exp_double, 1.0),
    (Function.LOG, _SINGLE): Approximation(log_single, 1.0),
    (Function.LOG, _DOUBLE): Approximation(log_double, 1.0),
    (Function.TANH, _SINGLE): Approximation(tanh_single, 5.0),
    (Function.TANH, _DOUBLE): Approximation(tanh_double, 1.5),
    (Function.ERF, _SINGLE): Approximation(erf_single, 7.5),
    (Function.ERF, _DOUBLE): Approximation(erf_double, 3.0),
    (Function.SIN, _SINGLE): Approximation(sin_single, 1.6, "|x| <= 2**30"),
    (Function.COS, _SINGLE): Approximation(cos_single, 1.6, "|x| <= 2**30"),
    (Function.RSQRT, _SINGLE): Approximation(_reciprocal_root, 1.5),
    (Function.RSQRT, _DOUBLE): Approximation(_reciprocal_root, 1.5),
    (BinaryOp.POW, _SINGLE): Approximation(power_single, 1.0),
}
"""Approximations by function and type.  Generators implement everything else themselves: square
roots and divisions correctly rounded, ``sin``, ``cos`` and ``**`` of float64 by the C library."""

ELEMENTARY = frozenset(fn for fn, _ in APPROXIMATIONS if isinstance(fn, Function))
"""The listed functions, which take floats only."""
