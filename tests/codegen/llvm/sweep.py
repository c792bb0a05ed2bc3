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

from ansorpy.ir.builders import sigmoid
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, const
from tests.codegen.programs import Array, Compiled, at, buffer, nest, program, put

_CHUNK = 1 << 20
_ONE = const(1.0, DType.FLOAT32)

FUNCTIONS: dict[str, tuple[Callable[[Expr], Expr], Callable[[Array], Array], float]] = {
    "exp": (lambda x: Call(Function.EXP, (x,)), np.exp, 1.1),
    "log": (lambda x: Call(Function.LOG, (x,)), np.log, 1.0),
    "tanh": (lambda x: Call(Function.TANH, (x,)), np.tanh, 5.0),
    "erf": (lambda x: Call(Function.ERF, (x,)), special.erf, 6.0),
    "sin": (lambda x: Call(Function.SIN, (x,)), np.sin, 1.6),
    "cos": (lambda x: Call(Function.COS, (x,)), np.cos, 1.6),
    "sqrt": (lambda x: Call(Function.SQRT, (x,)), np.sqrt, 0.5),
    "rsqrt": (lambda x: Call(Function.RSQRT, (x,)), lambda x: 1 / np.sqrt(x), 1.5),
    "1/x": (lambda x: _ONE / x, lambda x: 1 / x, 0.5),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + np.exp(-x)), 3.0),
}  # fmt: skip
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
