"""What a random network computes, and how much of it rounding decides.

Every node is evaluated as soon as it is drawn, by onnx's reference implementation in float64: once
on the exact operands, and a few times on operands and results that are each off by some roundings
of the type that the network computes in (Monte Carlo arithmetic; Parker, Pierce and Eggert, 2000).
Rounding a sum of many terms is no worse than summing terms that are off a little, so the spread of
these runs shows how far correct programs may be apart, whatever order they add in.  It also shows
where they may be far apart: near the step of a ``Floor``, say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

__all__ = ["RUNS", "Run", "Unstable", "Value", "allowed_error", "evaluated", "is_float", "off_by"]

Array = NDArray[Any]
Run = Callable[[Mapping[str, Array], int], Sequence[Any]]
"""Computes a node's results from its operands by name, and the number of the run."""

RUNS = 3
"""Runs off the exact one; a threshold that none of them crosses is far from the exact value."""
_FLOATS = (*map(np.dtype, (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)),)
_ROUNDINGS = 8.0
"""Roundings that each operand and each result is off by, at most."""
_FLOAT32_ONLY = frozenset({
    "AffineGrid", "Attention", "BatchNormalization", "Erf", "Gelu", "GridSample",
    "GroupNormalization", "HardSwish",
})  # fmt: skip
"""What onnx's reference computes, or has constants for, in float32, even for float64."""
_BESIDE_ONE = frozenset({"BiasGelu", "Gelu"})
"""``x/2 (1 + erf(x/sqrt(2)))``: where the sum cancels, the error of erf is all that is left."""
_MARGIN = 4.0
"""Factor from the spread of ``RUNS`` runs to what any run may be off."""
_LARGEST = {2: 300.0, 4: 1e5, 8: 1e5}
"""Bound of values by the bytes of their type: later products and sums remain finite."""
_BLURRED = 2.0**-4
"""Spread, as a fraction of the largest value, beyond which a value says nothing of a program."""
_LARGEST_INTEGER = {1: 120, 2: 15_000}
"""Bound of integers by the bytes of their type: no result depends on how an overflow ends."""
_LARGEST_PLACE = 60_000


class Unstable(Exception):
    """The node's value is not finite, too large, or decided by rounding."""


@dataclass(frozen=True)
class Value:
    """A tensor of a network: its name, element type, and the arrays of the exact and other runs.

    If *sure*, it is never off: a constant that decides a size or a choice.
    """

    name: str
    dtype: np.dtype[Any]
    runs: tuple[Array, ...]
    sure: bool = False

    @property
    def exact(self) -> Array:
        return self.runs[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.exact.shape

    @property
    def rank(self) -> int:
        return self.exact.ndim

    @property
    def size(self) -> int:
        return self.exact.size


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether *dtype* is a floating-point type of 16 bits or more."""
    return dtype in _FLOATS


def evaluated(
    nodes: Sequence[NodeProto],
    operands: Sequence[Value | None],
    dtype: np.dtype[Any],
    run: Run,
    rng: np.random.Generator,
    stated: float = 0.0,
) -> list[Value]:
    """The results of the last of *nodes*, whose floats are of type *dtype*; *run* computes them.

    *stated* is the error beyond rounding that an implementation may state for the node, as a
    fraction of its largest result.

    Raises:
        Unstable: Correct programs may disagree on a result, or it is too large.
    """
    last = nodes[-1]
    names = [name for name in last.output if name]
    present = [operand for operand in operands if operand is not None]
    unit = _unit_of(nodes, dtype)
    least = _least(dtype)
    results: list[list[Array]] = [[] for _ in names]
    with np.errstate(all="ignore"):
        for number in range(1 + RUNS):
            feeds = {
                v.name: v.exact if v.sure else _blurred(v.runs[number], unit, least, number, rng)
                for v in present
            }
            outputs = run(feeds, number)
            beside = _beside_one(last, present, number, unit)
            beside = beside + _beside_sum(last, present, number, unit, outputs)
            for held, output in zip(results, outputs, strict=True):
                wide = _widened(output)
                off = (
                    stated * np.abs(wide).max(initial=0.0) if stated and is_float(wide.dtype) else 0
                )
                held.append(_blurred(wide, unit, least, number, rng, off + beside))
    return [
        _checked(Value(name, dtype if is_float(runs[0].dtype) else runs[0].dtype, tuple(runs)))
        for name, runs in zip(names, results, strict=True)
    ]


def off_by(nodes: Iterable[NodeProto], dtype: np.dtype[Any]) -> float:
    """How far the floats of *nodes* are off in the runs that are not exact, as a fraction."""
    return _ROUNDINGS * _unit_of(nodes, dtype)


def _unit_of(nodes: Iterable[NodeProto], dtype: np.dtype[Any]) -> float:
    """Largest relative error of a rounding to *dtype*, or to what some of *nodes* compute in."""
    narrow = any(node.op_type in _FLOAT32_ONLY for node in nodes)
    return max(_unit(np.dtype(np.float32)) if narrow else 0.0, _unit(dtype))


def _beside_one(
    node: NodeProto, present: Sequence[Value], number: int, unit: float
) -> float | Array:
    """The error of a function that multiplies its operand by 1 plus what may be close to -1."""
    if node.op_type not in _BESIDE_ONE:
        return 0.0
    return np.asarray(unit * np.abs(sum(value.runs[number] for value in present)))


def _beside_sum(
    node: NodeProto, present: Sequence[Value], number: int, unit: float, outputs: Sequence[Any]
) -> float:
    """The error of sums that are less than their partial sums, as those of sorted numbers are."""
    if node.op_type != "ReduceSum" or not np.size(outputs[0]):
        return 0.0
    return float(unit * np.abs(present[0].runs[number]).sum() / np.size(outputs[0]))


def allowed_error(value: Value) -> Array:
    """How far an element of *value* may be from the exact run's."""
    off = np.max([np.abs(run - value.exact) for run in value.runs[1:]], axis=0)
    shared = np.sqrt(np.mean(np.square(off))) if off.size else 0.0
    return np.asarray(_MARGIN * (off + shared) + _unit(value.dtype) * np.abs(value.exact))


def _unit(dtype: np.dtype[Any]) -> float:
    """Largest relative error of a rounding to *dtype*."""
    return float(ml_dtypes.finfo(dtype).eps) / 2 if is_float(dtype) else 0.0


def _widened(array: Any) -> Array:
    made: Array = np.asarray(array)
    return made.astype(np.float64) if is_float(made.dtype) else made


def _least(dtype: np.dtype[Any]) -> float:
    """The least positive number of *dtype* that all programs round alike, relative to itself."""
    return float(ml_dtypes.finfo(dtype).smallest_normal) if is_float(dtype) else 0.0


def _blurred(
    array: Array, unit: float, least: float, number: int, rng: np.random.Generator,
    apart: float | Array = 0.0,
) -> Array:  # fmt: skip
    """*array* with each element off by some roundings, but for run number 0 and integers.

    *apart* is how far elements may be off beside that.

    Programs that compute in a wider type keep what is below *least*; in others it may become 0.
    """
    if number == 0 or not is_float(array.dtype):
        return array
    off = array * (1 + _ROUNDINGS * unit * rng.uniform(-1, 1, array.shape))
    vanishes = (np.abs(array) < least) & (rng.uniform(0, 1, array.shape) < 0.5)
    off = np.where(vanishes, 0.0, off)
    if np.any(apart):
        off = off + apart * rng.uniform(-1, 1, array.shape)
    return np.asarray(off)


def _checked(value: Value) -> Value:
    exact = value.exact
    if any(run.shape != exact.shape for run in value.runs):
        raise Unstable(f"rounding decides how many elements {value.name} has")
    if exact.dtype.kind in "iu" and np.abs(exact.astype(np.int64)).max(
        initial=0
    ) > _LARGEST_INTEGER.get(exact.itemsize, _LARGEST_PLACE):
        raise Unstable(f"{value.name} has large integers")
    if not is_float(exact.dtype):
        if any(not np.array_equal(run, exact) for run in value.runs[1:]):
            raise Unstable(f"{value.name} depends on rounding")
        return value
    if not all(np.isfinite(run).all() for run in value.runs):
        raise Unstable(f"{value.name} is not finite")
    largest = np.abs(exact).max(initial=0.0)
    if largest > _LARGEST[value.dtype.itemsize]:
        raise Unstable(f"{value.name} is large")
    if exact.size and largest < _unit(value.dtype) / 2**10:
        raise Unstable(f"{value.name} is zero: its consumers would show nothing")
    if any(np.abs(run - exact).max(initial=0.0) > _BLURRED * largest for run in value.runs):
        raise Unstable(f"{value.name} is decided by rounding")
    return value
