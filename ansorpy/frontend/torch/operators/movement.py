"""Operators that move elements, and those that make tensors from sizes and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import sympy
import torch

from ansorpy.frontend.torch.sizes import Size, Untranslatable, larger
from ansorpy.frontend.torch.writer import DTYPES, Operand, Value, Writer

__all__ = ["OPERATORS", "VIEWS"]

_END = (1 << 63) - 1
"""What ATen writes for the end of an axis."""


def _same(w: Writer, x: Value, **layout: object) -> str:
    return w.op("Identity", x)


def _reshaped(w: Writer, x: Value, *sizes: object) -> str:
    return w.reshape(x, w.result.shape)


def _permute(w: Writer, x: Value, dims: Sequence[int]) -> str:
    return w.op("Transpose", x, perm=[dim % x.rank for dim in dims])


def _transpose(w: Writer, x: Value, a: int, b: int) -> str:
    perm = list(range(x.rank))
    if perm:
        perm[a], perm[b] = perm[b], perm[a]
    return w.op("Transpose", x, perm=perm)


def _unsqueeze(w: Writer, x: Value, dim: int) -> str:
    return w.op("Unsqueeze", x, w.ints([dim % (x.rank + 1)]))


def _squeeze(w: Writer, x: Value, dims: int | Sequence[int]) -> str:
    """An axis of another extent than 1 stays."""
    given = [dims] if isinstance(dims, int) else dims
    axes = sorted({dim % x.rank for dim in given if x.rank and x.shape[dim] == 1})
    return w.op("Squeeze", x, w.ints(axes)) if axes else w.op("Identity", x)


def _expand(w: Writer, x: Value, sizes: Sequence[Size], *, implicit: bool = False) -> str:
    return w.expand(x, w.result.shape)


def _slice(
    w: Writer, x: Value, dim: int = 0, start: Size | None = None, end: Size | None = None,
    step: int = 1,
) -> str:  # fmt: skip
    return w.slice(x, dim % x.rank, 0 if start is None else start, _END if end is None else end,
                   step)  # fmt: skip


def _select(w: Writer, x: Value, dim: int, index: Size) -> str:
    axis = dim % x.rank
    place = w.as_type(index, torch.int64)
    if isinstance(index, int):
        return w.op("Gather", x, place, axis=axis)
    return w.op("Squeeze", w.slice(x, axis, index, index + 1), w.ints([axis]))


def _cat(w: Writer, parts: Sequence[Value], dim: int = 0) -> str:
    """Empty vectors count for nothing, whatever the rank of the others."""
    kept = [part for part in parts if part.shape != (0,) or w.result.rank == 1]
    values = [w.same_type(part) for part in kept]
    return w.op("Concat", *values, axis=dim % w.result.rank)


def _split(w: Writer, x: Value, sizes: Sequence[Size], dim: int = 0) -> tuple[str, ...]:
    found, start = [], 0
    for size in sizes:
        found.append(w.slice(x, dim % x.rank, start, start + size))
        start = start + size
    return tuple(found)


def _split_evenly(w: Writer, x: Value, size: Size, dim: int = 0) -> tuple[str, ...]:
    return _split(w, x, [part.shape[dim] for part in w.results], dim)


def _unbind(w: Writer, x: Value, dim: int = 0) -> tuple[str, ...]:
    return tuple(_select(w, x, dim, index) for index in range(len(w.results)))


def _flip(w: Writer, x: Value, dims: Sequence[int]) -> str:
    found = x.name
    for dim in dims:
        found = w.slice(found, dim % x.rank, -1, -_END, -1)
    return found if dims else w.op("Identity", x)


def _repeat(w: Writer, x: Value, repeats: Sequence[Size]) -> str:
    extra = len(repeats) - x.rank
    value = w.op("Unsqueeze", x, w.ints(list(range(extra)))) if extra else x.name
    return w.op("Tile", value, w.shape(repeats))


def _pads(x: Value, pad: Sequence[Size]) -> list[Size]:
    """ATen's pads (the last axis first, before and behind) in ONNX's order."""
    count = len(pad) // 2
    before: list[Size] = [0] * x.rank
    behind: list[Size] = [0] * x.rank
    for number in range(count):
        before[x.rank - 1 - number] = pad[2 * number]
        behind[x.rank - 1 - number] = pad[2 * number + 1]
    return [*before, *behind]


def _constant_pad(w: Writer, x: Value, pad: Sequence[Size], value: float = 0) -> str:
    return w.op("Pad", x, w.shape(_pads(x, pad)), w.same_type(value), mode="constant")


def _padding(mode: str) -> Callable[[Writer, Value, Sequence[Size]], str]:
    def translate(w: Writer, x: Value, pad: Sequence[Size]) -> str:
        return w.op("Pad", x, w.shape(_pads(x, pad)), mode=mode)

    return translate


def _diagonal(w: Writer, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    """The elements where the two axes have equal places, as the last axis."""
    a, b = dim1 % x.rank, dim2 % x.rank
    rows, columns, size = x.shape[a], x.shape[b], w.result.shape[-1]
    if not all(isinstance(extent, int) for extent in (rows, columns, size)):
        raise Untranslatable("a diagonal of axes whose sizes are open")
    rest = [axis for axis in range(x.rank) if axis not in (a, b)]
    flat = w.reshape(w.transpose(x, [*rest, a, b]), [*(x.shape[r] for r in rest), rows * columns])
    first = max(0, offset) + max(0, -offset) * columns
    places = np.arange(size, dtype=np.int64) * (columns + 1) + first
    return w.op("Gather", flat, w.constant(places), axis=len(rest))


def _slice_scatter(
    w: Writer, x: Value, source: Value, dim: int = 0, start: Size | None = None,
    end: Size | None = None, step: int = 1,
) -> str:  # fmt: skip
    """*x* with *source* in place of a part of it."""
    axis = dim % x.rank
    if step != 1:
        raise Untranslatable(f"step={step}")
    first: Size = 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = larger(0, first + x.shape[axis])
    parts = [w.slice(x, axis, 0, first)] if first != 0 else []
    behind = first + source.shape[axis]
    parts.append(w.same_type(source))
    if behind != x.shape[axis]:
        parts.append(w.slice(x, axis, behind, _END))
    return parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=axis)


def _select_scatter(w: Writer, x: Value, source: Value, dim: int, index: Size) -> str:
    axis = dim % x.rank
    row = w.op("Unsqueeze", source, w.ints([axis]))
    shape = tuple(1 if n == axis else extent for n, extent in enumerate(x.shape))
    return _slice_scatter(w, x, Value(row, source.dtype, shape), axis, index)


def _filled(w: Writer, like: object, value: Operand, *unused: object, **layout: object) -> str:
    """*value* at the shape of the result, which *like* has or is."""
    return w.expand(w.same_type(value), w.result.shape)


def _zeros(w: Writer, sizes: object, **layout: object) -> str:
    """Memory without contents, too."""
    return _filled(w, sizes, 0)


def _scalar(w: Writer, value: Operand, **layout: object) -> str:
    return w.op("Identity", w.same_type(value))


Number: TypeAlias = int | float | sympy.Expr


def _arange(w: Writer, start: Number, end: Number, step: Number = 1, **layout: object) -> str:
    count = w.result.shape[0]
    if isinstance(count, int) and not isinstance(start, sympy.Expr):
        numbers = start + np.arange(count) * step
        return w.constant(np.asarray(numbers).astype(DTYPES[w.dtype]))
    if w.dtype.is_floating_point:
        places = w.op("Range", *(w.as_type(n, torch.int64) for n in (0, count, 1)))
        scaled = w.op("Mul", w.cast(places, w.dtype), w.same_type(step))
        return w.op("Add", scaled, w.same_type(start))
    numbers_of = [w.as_type(number, torch.int64) for number in (start, end, step)]
    found = w.op("Range", *numbers_of)
    return found if w.dtype == torch.int64 else w.cast(found, w.dtype)


def _pixel_shuffle(w: Writer, x: Value, factor: int) -> str:
    if x.rank != 4:
        raise Untranslatable(f"{x.rank} dimensions")
    return w.op("DepthToSpace", x, blocksize=factor, mode="CRD")


_RESHAPES = ("_unsafe_view.default", "_reshape_copy.default", "reshape.default", "view.default",
             "view_copy.default", "flatten.using_ints", "unflatten.int")  # fmt: skip

VIEWS: dict[str, Callable[..., str | tuple[str, ...]]] = {
    **dict.fromkeys(_RESHAPES, _reshaped),
    **dict.fromkeys(("alias.default", "clone.default", "contiguous.default", "detach.default",
                     "lift_fresh_copy.default", "lift_fresh.default"), _same),
    "diagonal.default": _diagonal,
    "expand.default": _expand,
    "permute.default": _permute,
    "select.int": _select,
    "slice.Tensor": _slice,
    "split.Tensor": _split_evenly,
    "split_with_sizes.default": _split,
    "squeeze.dim": _squeeze,
    "squeeze.dims": _squeeze,
    "squeeze.default": lambda w, x: _squeeze(w, x, list(range(x.rank))),
    "t.default": lambda w, x: _permute(w, x, list(range(x.rank))[::-1]),
    "transpose.int": _transpose,
    "unbind.int": _unbind,
    "unsqueeze.default": _unsqueeze,
}  # fmt: skip
"""Operators whose results torch itself makes without copying, or almost."""

OPERATORS: dict[str, Callable[..., str | tuple[str, ...]]] = {
    **VIEWS,
    **{f"reflection_pad{n}d.default": _padding("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d.default": _padding("edge") for n in (1, 2, 3)},
    "arange.start_step": _arange,
    "arange.default": lambda w, end, **layout: _arange(w, 0, end),
    "arange.start": _arange,
    "cat.default": _cat,
    "constant_pad_nd.default": _constant_pad,
    "copy.default": _filled,
    "empty.memory_format": _zeros,
    "flip.default": _flip,
    "full.default": _filled,
    "full_like.default": _filled,
    "pixel_shuffle.default": _pixel_shuffle,
    "repeat.default": _repeat,
    "scalar_tensor.default": _scalar,
    "select_scatter.default": _select_scatter,
    "slice_scatter.default": _slice_scatter,
}
"""Translations by the operator's name and overload."""
