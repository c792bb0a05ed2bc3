"""The error function."""

from __future__ import annotations

from ansorpy.ir.builders import select
from ansorpy.ir.elementary.exponential import exp_double
from ansorpy.ir.elementary.parts import clamped, polynomial
from ansorpy.ir.expr import Expr

__all__ = ["erf_double", "erf_single"]


def erf_single(x: Expr) -> Expr:
    """Error function: a rational approximation on |x| < 4 (as in Eigen)."""
    inside = clamped(x, -4.0, 4.0)
    square = inside * inside
    y = inside * polynomial(square, _ERF_ABOVE) / polynomial(square, _ERF_BELOW)
    return select(abs(x) < 1e-4, x * 1.1283791670955126, y)


_ERF_ABOVE = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_BELOW = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def erf_double(x: Expr) -> Expr:
    """Error function: rational near 0, ``1 - exp(-x * x) * rational(|x|)`` beyond (Cephes)."""
    square = x * x
    near = x * polynomial(square, _NEAR_ABOVE) / polynomial(square, _NEAR_BELOW)
    size = clamped(abs(x), 0.0, 6.0)  # beyond, the result is exactly 1
    ratio = polynomial(size, _FAR_ABOVE) / polynomial(size, _FAR_BELOW)
    far = 1.0 - exp_double(-(size * size)) * ratio
    return select(abs(x) < 1.0, near, select(x < 0.0, -far, far))


_NEAR_ABOVE = (
    9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3,
    7.00332514112805075473e3, 5.55923013010394962768e4,
)  # fmt: skip
_NEAR_BELOW = (
    1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
    2.26290000613890934246e4, 4.92673942608635921086e4,
)  # fmt: skip
_FAR_ABOVE = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687,
    4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
    9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
)  # fmt: skip
_FAR_BELOW = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
    9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
    1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip
