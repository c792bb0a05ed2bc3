"""Reading and writing at places that tensors tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ansorpy.frontend.torch.sizes import Untranslatable
from ansorpy.frontend.torch.writer import Operand, Value, Writer

__all__ = ["OPERATORS"]

_REDUCTIONS = {"add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max",
               "amin": "min"}  # fmt: skip


class _Places:
    """The axes of a tensor that index tensors replace, and these tensors joined.

    The indexed axes come first in :attr:`order`, and each row of :attr:`rows` is a place on them.
    """

    def __init__(self, w: Writer, x: Value, indices: Sequence[Value | None]) -> None:
        given = {axis: index for axis, index in enumerate(indices) if index is not None}
        if any(index.dtype in (torch.bool, torch.uint8) for index in given.values()):
            raise Untranslatable("a mask, whose number of results depends on data")
        self.axes = list(given)
        self.rest = [axis for axis in range(x.rank) if axis not in given]
        self.order = [*self.axes, *self.rest]
        self.shape = _broadcast([index.shape for index in given.values()])
        parts = [
            w.op("Unsqueeze", w.expand(w.as_type(index, torch.int64), self.shape),
                 w.ints([len(self.shape)]))
            for index in given.values()
        ]  # fmt: skip
        self.rows = parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=-1)

    @property
    def ahead(self) -> int:
        """How many axes of the result stand before those of the index tensors."""
        first, last = self.axes[0], self.axes[-1]
        return first if last - first + 1 == len(self.axes) else 0

    def to_result(self) -> list[int]:
        """How to transpose what is read, whose first axes are those of the index tensors."""
        rank, ahead = len(self.shape), self.ahead
        kept = list(range(rank, rank + len(self.rest)))
        return [*kept[:ahead], *range(rank), *kept[ahead:]]


def _broadcast(shapes: Sequence[tuple[object, ...]]) -> list[object]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return [next((e for e in extents if e != 1), 1) for extents in zip(*padded, strict=True)]


def _index(w: Writer, x: Value, indices: Sequence[Value | None]) -> str:
    places = _Places(w, x, indices)
    if len(places.axes) == 1:
        [index] = [index for index in indices if index is not None]
        return w.op("Gather", x, w.as_type(index, torch.int64), axis=places.axes[0])
    found = w.op("GatherND", w.transpose(x, places.order), places.rows)
    return w.transpose(found, places.to_result())


def _index_put(
    w: Writer, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> str:
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype == torch.bool:
        return _masked(w, x, indices[0], values, accumulate)
    places = _Places(w, x, indices)
    turned = places.to_result()
    inner = [*places.shape, *(x.shape[axis] for axis in places.rest)]
    spread = w.expand(w.same_type(values), [inner[axis] for axis in turned])
    spread = w.transpose(spread, [turned.index(axis) for axis in range(len(turned))])
    found = w.op("ScatterND", w.transpose(x, places.order), places.rows, spread,
                 reduction="add" if accumulate else "none")  # fmt: skip
    return w.transpose(found, [places.order.index(axis) for axis in range(x.rank)])


def _masked(w: Writer, x: Value, mask: Value, values: Value, accumulate: bool) -> str:
    """The elements at a mask replaced by one value; several would be counted off by data."""
    if values.rank or accumulate:
        raise Untranslatable("a mask, whose number of elements depends on data")
    for axis in range(mask.rank, x.rank):
        mask = Value(w.op("Unsqueeze", mask, w.ints([axis])), mask.dtype, (*mask.shape, 1))
    return w.op("Where", mask, w.same_type(values), x)


def _index_select(w: Writer, x: Value, dim: int, index: Value) -> str:
    if x.rank == 0:
        raise Untranslatable("a number")
    return w.op("Gather", x, w.as_type(index, torch.int64), axis=dim % x.rank)


def _gather(w: Writer, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> str:
    if x.rank == 0 or index.rank == 0:
        raise Untranslatable("a number")
    return w.op("GatherElements", x, w.as_type(index, torch.int64), axis=dim % x.rank)


def _scatter(
    w: Writer, x: Value, dim: int, index: Value, source: Operand, *, reduce: str = ""
) -> str:
    if x.rank == 0 or index.rank == 0:
        raise Untranslatable("a number")
    if isinstance(source, Value):
        cut = source.name
        for axis, (have, need) in enumerate(zip(source.shape, index.shape, strict=True)):
            cut = cut if have == need else w.slice(cut, axis, 0, need)
    else:
        cut = w.expand(w.same_type(source), index.shape)
    how = _REDUCTIONS[reduce] if reduce else "none"
    return w.op("ScatterElements", x, w.as_type(index, torch.int64), cut, axis=dim % x.rank,
                reduction=how)  # fmt: skip


def _scatter_add(w: Writer, x: Value, dim: int, index: Value, source: Value) -> str:
    return _scatter(w, x, dim, index, source, reduce="add")


def _scatter_reduce(
    w: Writer, x: Value, dim: int, index: Value, source: Value, reduce: str, *,
    include_self: bool = True,
) -> str:  # fmt: skip
    if not include_self or reduce not in _REDUCTIONS:
        raise Untranslatable(f"reduce={reduce!r}, include_self={include_self}")
    return _scatter(w, x, dim, index, source, reduce=reduce)


OPERATORS: dict[str, Callable[..., str]] = {
    **{f"scatter.{form}": _scatter for form in ("src", "value")},
    "_unsafe_index.Tensor": _index,
    "gather.default": _gather,
    "index.Tensor": _index,
    "index_put.default": _index_put,
    "index_select.default": _index_select,
    "scatter_add.default": _scatter_add,
    "scatter_reduce.two": _scatter_reduce,
}
"""Translations by the operator's name and overload."""
