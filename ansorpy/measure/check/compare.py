"""Compare an output with its reference, within the rounding error expected of its arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Array, Ints, Masks
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.measure.check.bounds import largest_value

__all__ = [
    "Comparison", "Limits", "compare", "extra_error", "least_scale", "limits", "sample_points",
    "stated_error", "tolerance",
]  # fmt: skip

_BASE_ULPS = 32.0
_ULPS_PER_ROOT_TERM = 4.0
_ULPS_OF_MAGNITUDE = 16.0
"""Error an element may have, in ulps of its magnitude, no matter how much of its sum cancels.

This is half the error allowed at the largest value; it matters only where all elements cancel.
Measured: for sums of 16 to 25,000 products of standard normals, the tolerance derived from the
largest value is 2 to 17 times as large.
"""

_BLOCK = 64
"""Elements per block.  One may be small because its sum cancels, but hardly all of them."""
_BLOCK_FACTOR = 256.0
"""Factor on the allowed error of an element when compared with the largest value of its block."""
_FLOOR = 2.0**-10
"""Fraction of the allowed error (relative to the largest value) that every element may have."""


@dataclass(frozen=True)
class Comparison:
    """``error``: the largest difference divided by the largest reference value or least scale."""

    error: float
    reason: str

    @property
    def ok(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class Limits:
    """What :func:`compare` allows, for comparing where the output is.

    NaNs and infinities must be where the reference has them.  For floats, the largest difference of
    finite elements must have at most the error ``allowed``, and no element of a row of
    ``row_elements`` may differ by more than the row's entry in ``rows``, if there are any.
    """

    allowed: float
    scale: float
    row_elements: int = 1
    rows: Array | None = None

    def error(self, largest: float) -> float:
        """The error of an output whose largest difference from the reference is *largest*."""
        return _relative(largest, self.scale)


def limits(want: Array, allowed: float, *, by_block: bool = False, least: float = 0.0) -> Limits:
    """The limits of :func:`compare` for the reference *want*."""
    want = np.atleast_1d(want)
    if want.dtype.kind in "iub":
        return Limits(0.0, 0.0)
    b = _as_float(want)
    own = float(np.abs(b).max(initial=0.0, where=np.isfinite(b)))
    found = _row_limits(b, allowed) if by_block and own > least else None
    if found is None:
        return Limits(allowed, max(own, least))
    return Limits(allowed, max(own, least), _row_elements(b.shape), found[0])


def tolerance(dag: ComputeDAG, output: Tensor) -> float:
    """Largest error allowed in *output*, as a fraction of its largest reference value.

    Rounding errors of a sum of K terms grow like sqrt(K) for random data, in units of the type in
    which sums are computed; of all else, the coarsest type on the path to the output sets the unit.
    Errors that stages declare are added (``attrs.error``: Winograd, approximated functions).  A
    saturating output does not show how large the sums before it were: for random data they and
    their errors grow like sqrt(K).  The bound of such a function counts as at least one, because
    whatever scales it down also scales the errors down.  The tolerance is 0 for integers and
    booleans, which must be equal.
    """
    stages = dag.leading_to(output)
    if not output.dtype.is_float:
        return 0.0
    terms = sum(math.prod(axis.extent for axis in op.reduce_axes) for op in stages)
    hidden = max(1.0, math.sqrt(terms) / max(1.0, largest_value(output)))
    types = _floats(stages, output)
    of_sums = _epsilon(dtype.of_sums for dtype in types)
    summing = _ULPS_PER_ROOT_TERM * math.sqrt(terms) * of_sums
    return (_BASE_ULPS * _epsilon(types) + summing) * hidden + _stated(stages)


def least_scale(dag: ComputeDAG, output: Tensor, magnitude: float) -> float:
    """Scale that replaces the largest value in :func:`tolerance` if all values are below it.

    *magnitude* is the magnitude of the output's elements (:mod:`ansorpy.ir.analysis.magnitude`).
    Where every sum cancels, only rounding errors remain, and these are proportional to the size of
    the terms.
    """
    allowed = tolerance(dag, output)
    if not allowed:
        return 0.0
    stages = dag.leading_to(output)
    lost = _ULPS_OF_MAGNITUDE * _epsilon(_floats(stages, output)) + _stated(stages)
    return magnitude * lost / allowed


def _floats(stages: Iterable[ComputeOp], output: Tensor) -> list[DType]:
    """The floating-point types on the path to *output*, which has one."""
    return [*(op.dtype for op in stages if op.dtype.is_float), output.dtype]


def _epsilon(types: Iterable[DType]) -> float:
    """Machine epsilon of the coarsest of *types*."""
    return max(dtype.epsilon for dtype in types)


def stated_error(dag: ComputeDAG) -> float:
    """Sum of the errors beyond rounding that the stages of a definition declare."""
    return _stated(dag.computes)


def extra_error(wanted: ComputeDAG, definition: ComputeDAG) -> float:
    """Stated error of *definition* beyond that of *wanted*, an equivalent definition."""
    return max(0.0, stated_error(definition) - stated_error(wanted))


def _stated(stages: Iterable[ComputeOp]) -> float:
    return sum(op.attrs.error for op in stages)


def compare(
    name: str,
    got: Array,
    want: Array,
    allowed: float,
    *,
    by_block: bool = False,
    least: float = 0.0,
) -> Comparison:
    """Compare an output with its reference; both have the same shape and type.

    *allowed* is a fraction of the largest reference value, or of *least* if all values are smaller
    (:func:`least_scale`).

    NaNs and infinities must be where the reference has them.  With *by_block*, the error of each
    element is also compared, far less strictly, with the largest value of its row (the trailing
    dimensions with at least 64 elements in all), which detects wrong elements in rows of small
    values.  This does not apply to algorithms with a stated error, which is relative to the largest
    output, nor where all values are below *least*.
    """
    got, want = np.atleast_1d(got), np.atleast_1d(want)  # a scalar becomes one element
    if got.dtype.kind in "iub":
        return _compare_exact(name, got, want)
    a, b = _as_float(got), _as_float(want)
    difference, own = _largest(a, b)
    if not math.isfinite(difference + own):
        wrong = _wrong_special(name, a, b)
        if wrong:
            return Comparison(math.inf, wrong)
        finite = np.isfinite(b)
        a, b = np.where(finite, a, 0), np.where(finite, b, 0)
        difference, own = _largest(a, b)
    error = _relative(difference, max(own, least))
    if error <= allowed:
        by_block = by_block and own > least
        return Comparison(error, _wrong_in_block(name, a, b, allowed) if by_block else "")
    at = _position(int(np.abs(a - b).argmax()), a.shape)
    return Comparison(
        error,
        f"{name}{_text(at)} is {a[at]:.9g}, the reference {b[at]:.9g}: "
        f"{error:.2g} of the largest value, {allowed:.2g} allowed",
    )


def _relative(largest: float, scale: float) -> float:
    return largest / scale if scale else (0.0 if largest == 0 else math.inf)


def _largest(a: Array, b: Array) -> tuple[float, float]:
    """The largest difference and the largest absolute value of *b*, in as few passes as possible.

    They are not finite if an element is not.
    """
    with np.errstate(invalid="ignore"):
        difference = np.subtract(a, b)
    largest = float(np.abs(difference, out=difference).max(initial=0.0))
    return largest, max(float(b.max(initial=0.0)), -float(b.min(initial=0.0)))


def _wrong_special(name: str, a: Array, b: Array) -> str:
    """Describe a NaN or an infinity that only one of both has; empty if there is none."""
    same = np.where(np.isfinite(b), np.isfinite(a), (a == b) | (np.isnan(a) & np.isnan(b)))
    if same.all():
        return ""
    at = _first(~same)
    what = "was never written or is not a number" if np.isnan(a[at]) else "is wrong"
    return f"{name}{_text(at)} {what}: got {a[at]:g}, want {b[at]:g}"


def _wrong_in_block(name: str, a: Array, b: Array, allowed: float) -> str:
    """Describe an element that is wrong relative to the others of its row; empty if none is.

    All elements are finite.
    """
    found = _row_limits(b, allowed)
    if found is None:
        return ""
    rows, largest = found
    size = _row_elements(b.shape)
    off = np.abs(a - b).reshape(-1, size)
    beyond = off.max(axis=1) > rows
    if not beyond.any():
        return ""
    row = int(beyond.argmax())
    at = _position(row * size + int(off[row].argmax()), b.shape)
    return (
        f"{name}{_text(at)} is {a[at]:.9g}, the reference {b[at]:.9g}; "
        f"the largest value of its row is {largest[row]:.2g}"
    )


def _row_limits(b: Array, allowed: float) -> tuple[Array, Array] | None:
    """For each row of *b*, the largest difference allowed and the largest value; None: no limit."""
    size, limit = _row_elements(b.shape), _BLOCK_FACTOR * allowed
    if size >= b.size or limit > 0.5:
        return None
    largest = np.abs(np.where(np.isfinite(b), b, 0)).reshape(-1, size).max(axis=1)
    return np.maximum(limit * largest, _FLOOR * allowed * largest.max()), largest


def _row_elements(shape: tuple[int, ...]) -> int:
    """Size of a row: the fewest trailing dimensions with at least ``_BLOCK`` elements."""
    size = 1
    for extent in reversed(shape):
        if size >= _BLOCK:
            break
        size *= extent
    return size


def _compare_exact(name: str, got: Array, want: Array) -> Comparison:
    differs = got != want
    if not differs.any():
        return Comparison(0.0, "")
    at = _first(differs)
    share = f"{int(differs.sum())} of {differs.size} elements differ"
    reason = f"{name}{_text(at)} is {got[at]}, the reference {want[at]}; {share}"
    return Comparison(math.inf, reason)


def _as_float(array: Array) -> Array:
    """Convert to a type wide enough for subtraction; float32 and float64 are left as they are."""
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32)


def _first(mask: Masks) -> tuple[int, ...]:
    return _position(int(mask.argmax()), mask.shape)


def _position(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _text(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]"


def sample_points(shape: tuple[int, ...], count: int, rng: np.random.Generator) -> Ints:
    """Draw at most *count* distinct points of *shape*, ``[n, ndim]``: corners, faces and others."""
    total = math.prod(shape)
    if total <= count:
        return np.argwhere(np.ones(shape, dtype=bool)).astype(np.int64).reshape(total, len(shape))
    ends = [np.unique([0, extent - 1]) for extent in shape]
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, len(shape))
    random = np.stack(np.unravel_index(rng.choice(total, count, replace=False), shape), axis=-1)
    # Add a third as many points on faces of the box, where guards and tails are.
    faces = random[: count // 3].copy()
    axis = rng.integers(0, len(shape), len(faces))
    high = np.asarray(shape)[axis] - 1
    faces[np.arange(len(faces)), axis] = np.where(rng.random(len(faces)) < 0.5, 0, high)
    points = np.concatenate([corners[:count], faces, random])
    flat = np.ravel_multi_index(tuple(points.T), shape)
    keep = np.sort(np.unique(flat, return_index=True)[1])[:count]
    return points[keep].astype(np.int64)
