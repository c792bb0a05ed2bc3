"""Reductions along axes, and what needs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy
import torch

from ansorpy.frontend.torch.sizes import Untranslatable
from ansorpy.frontend.torch.writer import Value, Writer

__all__ = ["OPERATORS"]

Dims = int | Sequence[int] | None


def _axes(x: Value, dims: Dims) -> list[int]:
    """All axes if none is given."""
    given = [dims] if isinstance(dims, int) else list(dims or range(x.rank))
    return [dim % max(1, x.rank) for dim in given]


def _reduced(w: Writer, kind: str, value: str, x: Value, dims: Dims, keepdim: bool) -> str:
    if x.rank == 0:
        return w.op("Identity", value)
    return w.op(kind, value, w.ints(_axes(x, dims)), keepdims=int(keepdim))


def _reduction(kind: str) -> Callable[..., str]:
    def translate(
        w: Writer, x: Value, dims: Dims = None, keepdim: bool = False,
        dtype: torch.dtype | None = None,
    ) -> str:  # fmt: skip
        return _reduced(w, kind, w.same_type(x), x, dims, keepdim)

    return translate


def _truth(kind: str) -> Callable[..., str]:
    """In bytes without a sign, whose largest and least of no elements are false and true."""

    def translate(w: Writer, x: Value, dims: Dims = None, keepdim: bool = False) -> str:
        numbers = w.cast(w.as_type(x, torch.bool), torch.uint8)
        return w.cast(_reduced(w, kind, numbers, x, dims, keepdim), w.dtype)

    return translate


def _extreme_place(kind: str) -> Callable[..., str]:
    def translate(w: Writer, x: Value, dim: int | None = None, keepdim: bool = False) -> str:
        if x.rank == 0:
            return w.expand(w.same_type(0), ())
        numbers = w.cast(x, torch.int32) if x.dtype == torch.bool else x.name
        if dim is None:
            flat = w.op("Reshape", numbers, w.ints([-1]))
            return w.reshape(w.op(kind, flat, axis=0, keepdims=0), w.result.shape)
        return w.op(kind, numbers, axis=dim % x.rank, keepdims=int(keepdim))

    return translate


def _extreme(value: str, place: str) -> Callable[..., tuple[str, str]]:
    def translate(w: Writer, x: Value, dim: int, keepdim: bool = False) -> tuple[str, str]:
        if x.rank == 0 or x.dtype == torch.bool:
            raise Untranslatable(f"{x.rank} dimensions of {x.dtype}")
        axis = dim % x.rank
        found = w.op(value, x, w.ints([axis]), keepdims=int(keepdim))
        return found, w.op(place, x, axis=axis, keepdims=int(keepdim))

    return translate


def _var_mean(
    w: Writer, x: Value, dims: Dims = None, *, correction: float | None = None,
    keepdim: bool = False,
) -> tuple[str, str]:  # fmt: skip
    """The variance with ``count - correction`` as divisor, and the mean.

    Those of 16-bit floats are computed in float32, as their squares may overflow.
    """
    axes = _axes(x, dims)
    count = sympy.Integer(1)
    for axis in axes:
        count = count * x.shape[axis]
    if not count.is_Integer:
        raise Untranslatable("a variance along axes whose sizes are open")
    divisor = max(0.0, float(count) - (1.0 if correction is None else float(correction)))
    wide = torch.promote_types(x.dtype, torch.float32)
    value = w.as_type(x, wide)
    mean = w.op("ReduceMean", value, w.ints(axes), keepdims=1)
    away = w.op("Sub", value, mean)
    total = w.op("ReduceSum", w.op("Mul", away, away), w.ints(axes), keepdims=int(keepdim))
    variance = w.op("Div", total, w.as_type(divisor, wide))
    if not keepdim:
        mean = w.op("Squeeze", mean, w.ints(axes))
    if wide == x.dtype:
        return variance, mean
    return w.cast(variance, x.dtype), w.cast(mean, x.dtype)


def _var(
    w: Writer, x: Value, dims: Dims = None, *, correction: float | None = None,
    keepdim: bool = False,
) -> str:  # fmt: skip
    return _var_mean(w, x, dims, correction=correction, keepdim=keepdim)[0]


def _cumsum(w: Writer, x: Value, dim: int, *, dtype: torch.dtype | None = None) -> str:
    if x.rank == 0:
        return w.op("Identity", w.same_type(x))
    return w.op("CumSum", w.same_type(x), w.as_type(dim % x.rank, torch.int64))


def _softmax(kind: str) -> Callable[[Writer, Value, int, bool], str]:
    def translate(w: Writer, x: Value, dim: int, to_float: bool = False) -> str:
        if x.rank == 0:
            raise Untranslatable("a number")
        return w.op(kind, w.same_type(x), axis=dim % x.rank)

    return translate


def _topk(
    w: Writer, x: Value, k: int, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[str, ...]:
    if x.rank == 0 or not isinstance(k, int):
        raise Untranslatable(f"the {k} largest")
    return tuple(w.op_with_outputs(
        "TopK", x, w.ints([k]), outputs=2, axis=dim % x.rank, largest=int(largest),
        sorted=int(is_sorted),
    ))  # fmt: skip


def _sort(
    w: Writer, x: Value, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[str, ...]:
    return _topk(w, x, x.shape[dim] if x.rank else 1, dim, descending)


def _sort_stably(
    w: Writer, x: Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[str, ...]:
    return _sort(w, x, dim, descending)


OPERATORS: dict[str, Callable[..., str | tuple[str, ...]]] = {
    **{f"all.{form}": _truth("ReduceMin") for form in ("default", "dim", "dims")},
    **{f"any.{form}": _truth("ReduceMax") for form in ("default", "dim", "dims")},
    "_log_softmax.default": _softmax("LogSoftmax"),
    "_softmax.default": _softmax("Softmax"),
    "amax.default": _reduction("ReduceMax"),
    "amin.default": _reduction("ReduceMin"),
    "argmax.default": _extreme_place("ArgMax"),
    "argmin.default": _extreme_place("ArgMin"),
    "cumsum.default": _cumsum,
    "max.default": _reduction("ReduceMax"),
    "max.dim": _extreme("ReduceMax", "ArgMax"),
    "mean.default": _reduction("ReduceMean"),
    "mean.dim": _reduction("ReduceMean"),
    "min.default": _reduction("ReduceMin"),
    "min.dim": _extreme("ReduceMin", "ArgMin"),
    "prod.default": _reduction("ReduceProd"),
    "prod.dim_int": _reduction("ReduceProd"),
    "sort.default": _sort,
    "sort.stable": _sort_stably,
    "sum.default": _reduction("ReduceSum"),
    "sum.dim_IntList": _reduction("ReduceSum"),
    "topk.default": _topk,
    "var.correction": _var,
    "var_mean.correction": _var_mean,
}
"""Translations by the operator's name and overload."""
