"""The error of every float32 function over all bit patterns.

``python -m tests.codegen.llvm.sweep`` prints it.

``--stride N`` takes every N-th pattern (1 takes all 2**32, some minutes a function).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from ansorpy.ir.builders import erf, sigmoid
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS
from ansorpy.ir.expr import Call, Expr, Function, const
from tests.codegen.programs import Array, Compiled, at, buffer, nest, program, put

_CHUNK = 1 << 20
_ONE = const(1.0, DType.FLOAT32)


def _gelu(x: Expr) -> Expr:
    return x * 0.5 * (erf(x * float(np.sqrt(0.5))) + 1.0)


def _row(fn: Function, exact: Callable[[Array], Array]) -> Row:
    return (lambda x: Call(fn, (x,))), exact, APPROXIMATIONS[fn, DType.FLOAT32].error


Row = tuple[Callable[[Expr], Expr], Callable[[Array], Array], float]
FUNCTIONS: dict[str, Row] = {
    "exp": _row(Function.EXP, np.exp),
    "log": _row(Function.LOG, np.log),
    "tanh": _row(Function.TANH, np.tanh),
    "erf": _row(Function.ERF, special.erf),
    "sin": _row(Function.SIN, np.sin),
    "cos": _row(Function.COS, np.cos),
    "rsqrt": _row(Function.RSQRT, lambda x: 1 / np.sqrt(x)),
    "sqrt": (lambda x: Call(Function.SQRT, (x,)), np.sqrt, 0.5),
    "1/x": (lambda x: _ONE / x, lambda x: 1 / x, 0.5),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + np.exp(-x)), 3.0),
    "gelu": (_gelu, lambda x: 0.5 * x * (1 + special.erf(x / np.sqrt(2))), 5.0),
}
"""By name: as an expression, exactly in float64, and the largest error stated, in ULP."""


class Swept:
    """One function compiled for arrays of at most a chunk."""

    def __init__(self, name: str) -> None:
        fn, self.exact, self.stated = FUNCTIONS[name]
        self.name = name
        x, y = buffer("x", _CHUNK), buffer("y", _CHUNK)
        body = nest(f"v{_CHUNK}", lambda i: put(y, (i,), fn(at(x, i))))
        self.compiled = Compiled(program(body, [x], [y]))

    def worst(self, stride: int, start: int = 0) -> tuple[float, float]:
        """(ULP, argument) of the largest error at every *stride*-th pattern from *start*."""
        worst = (-1.0, 0.0)
        for x in _patterns(stride, start):
            y = np.empty_like(x)
            self.compiled(x, y)
            errors = _errors(x, y, self.exact, self.name)
            at_worst = int(errors.argmax())
            worst = max(worst, (float(errors[at_worst]), float(x[at_worst])))
        return worst


def _patterns(stride: int, start: int) -> Iterator[Array]:
    for first in range(start, 1 << 32, stride * _CHUNK):
        bits = first + stride * np.arange(_CHUNK, dtype=np.uint64)
        # A chunk that ends early repeats its last patterns: the program takes whole chunks.
        yield np.minimum(bits, 0xFFFFFFFF).astype(np.uint32).view(np.float32)


def _errors(x: Array, got: Array, exact: Callable[[Array], Array], name: str) -> Any:
    """Error of each element in units of the last place; infinite where a limit is wrong."""
    with np.errstate(all="ignore"):
        wide = exact(x.astype(np.float64))
        rounded = wide.astype(np.float32)
        spacing = np.spacing(np.abs(rounded)).astype(np.float64)
        errors = np.abs(got.astype(np.float64) - wide) / spacing
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    errors = np.where(same & ~np.isfinite(rounded), 0.0, errors)
    if name == "sigmoid":
        errors[(wide < 2.0**-125) & (got >= 0) & (got < 2.0**-125)] = 0.0  # 0 for denormals
    if name == "gelu":
        # 1 + erf cancels below: the error is stated in units of the last place of x.
        below = np.isfinite(x) & (x < 0)
        lost = np.abs(got[below].astype(np.float64) - wide[below])
        errors[below] = lost / np.spacing(np.abs(x[below]))
    if name in ("sin", "cos"):
        errors[np.isfinite(x) & (np.abs(x) > 2.0**30)] = 0.0  # stated up to there
    return np.nan_to_num(errors, nan=np.inf)


def main() -> None:
    """Print a line a function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    given = parser.parse_args()
    for name in given.only:
        swept = Swept(name)
        error, where = swept.worst(given.stride)
        print(f"{name:<8} {error:6.3f} ULP at {where!r:<24} stated {swept.stated}", flush=True)


if __name__ == "__main__":
    main()
