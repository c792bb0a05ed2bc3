"""Stages shared by all definitions of a transposed convolution by residue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ansorpy.ir import builders
from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.expr import Axis, Expr, Load, Var
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute
from ansorpy.rules.algorithms.transposed import SparseWindow, Transposed

__all__ = ["TapRange", "fit", "groups_of", "read_where", "slots_of", "stage"]


class TapRange(Protocol):
    """The range of data elements that a window's taps read."""

    @property
    def window(self) -> SparseWindow:
        """The window, whose elements may have zeros between them."""
        ...

    @property
    def first(self) -> int:
        """The lowest index that is read; negative if taps reach beyond the data."""
        ...

    @property
    def reach(self) -> int:
        """The number of elements from ``first`` to the last one read."""
        ...


S = TypeVar("S", bound=TapRange)


def slots_of(conv: Transposed, spans: Sequence[S]) -> list[Axis | S]:
    """The dimensions of the data except for its channels, in order: kept axes and *spans*."""
    dims = _dims(conv, spans)
    return [slot for slot in sorted(dims, key=lambda slot: dims[slot]) if slot not in conv.channels]


def _dims(conv: Transposed, spans: Sequence[S]) -> dict[Axis | S, int]:
    dims: dict[Axis | S, int] = {axis: dim for dim, axis in conv.data_axes}
    return dims | {span: span.window.dim for span in spans}


def fit(conv: Transposed, order: Sequence[Axis | TapRange]) -> Tensor:
    """The data in the range that taps reach, with a dimension for each of *order*.

    Elements beyond the data are zero.  The result is the data itself if nothing changes.
    """
    spans = [slot for slot in order if not isinstance(slot, Axis)]
    dims = _dims(conv, spans)
    placed = [dims[slot] for slot in order]
    shape = [slot.extent if isinstance(slot, Axis) else slot.reach for slot in order]
    source = conv.data.source
    assert isinstance(source, Tensor)
    is_whole = tuple(shape) == source.shape and not any(span.first for span in spans)
    if is_whole and placed == sorted(placed):
        return source

    def value(*i: Expr) -> Expr:
        by_slot = dict(zip(order, i, strict=True))
        axes: dict[Var, Expr] = {a: x for a, x in by_slot.items() if isinstance(a, Axis)}
        indices = [substitute(index, axes) for index in conv.data.indices]
        inside: list[Expr] = []
        for span in spans:
            dim = span.window.dim
            at = by_slot[span] + span.first if span.first else by_slot[span]
            indices[dim] = at
            size = source.shape[dim]
            inside += [at >= 0] * (span.first < 0)
            inside += [at < size] * (span.first + span.reach > size)
        return read_where(inside, Load(source, tuple(indices)))

    return stage(conv, "fit", shape, value)


def groups_of(conv: Transposed) -> list[Axis]:
    """Kept axes that also index the weight."""
    read = {e for index in conv.weight.indices for e in axes_in(index)}
    return [a for a in conv.kept if a in read]


def read_where(conditions: Sequence[Expr], read: Expr) -> Expr:
    """*read* where all *conditions* hold, else zero."""
    return builders.select(builders.all_of(*conditions), read, 0.0) if conditions else read


def stage(conv: Transposed, part: str, shape: Sequence[int], fn: Callable[..., Expr]) -> ComputeOp:
    """A stage named after the operator and *part*, whose elements are ``fn(i0, i1, ...)``."""
    names = [f"i{d}" for d in range(len(shape))]
    return compute(shape, fn, name=f"{conv.op.name}.{part}", names=names)
