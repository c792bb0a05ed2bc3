"""Tensor expressions: operators are defined by placeholders and computes.

>>> from ansorpy.ir.tensor import compute, placeholder, reduce_axis
>>> from ansorpy.ir.builders import sum
>>> A, B = placeholder((4, 8), name="A"), placeholder((8, 5), name="B")
>>> k = reduce_axis(8, name="k")
>>> C = compute((4, 5), lambda i, j: sum(A[i, k] * B[k, j], axis=k), name="C")
>>> C.shape, len(C.reduce_axes)
((4, 5), 1)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import reduce
from operator import index

from ansorpy.ir.analysis.sharing import unique_nodes
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Binary,
    BinaryOp,
    Expr,
    ExprLike,
    Load,
    Reduce,
    as_expr,
    const,
    walk,
)
from ansorpy.ir.extents import AnyExtent, Extent, Symbolic, dims_of, least, prod_of
from ansorpy.ir.node import node
from ansorpy.ir.operands import misfit
from ansorpy.ir.operators import demand_no_truth
from ansorpy.ir.recursion import make_room
from ansorpy.ir.routines.base import Routine

__all__ = [
    "ComputeOp", "PlaceholderOp", "Tensor", "compute", "computed_by", "placeholder", "reduce_axis",
]  # fmt: skip


class Tensor:
    """A dense, row-major array that is only defined, not stored."""

    __slots__ = ()

    name: str
    shape: tuple[AnyExtent, ...]
    dtype: DType

    __iter__ = None  # indexing would make it an iterable of nothing

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> AnyExtent:
        """Number of elements."""
        return prod_of(self.shape)

    @property
    def bytes(self) -> AnyExtent:
        """Bytes of all elements."""
        return self.size * self.dtype.bytes

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {self.dtype.value}[{', '.join(map(str, self.shape))}]>"

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) != self.ndim:
            raise IndexError(
                f"{self.name} has {self.ndim} dimensions, indexed with {len(items)} indices"
            )
        return Load(self, tuple(map(_index, items)))


def _index(item: ExprLike) -> Expr:
    """*item* as an int64 index; other integer types, which tensors may hold, are converted."""
    demand_no_truth(item)
    given = as_expr(item, DType.INT64)
    kind = given.dtype
    if kind.is_float or kind is DType.BOOL:
        raise TypeError(f"an index must be an integer, got {kind.value}")
    return given if kind is DType.INT64 else given.astype(DType.INT64)


@node
class PlaceholderOp(Tensor):
    """An input.  If ``constant``, it is bound once; stages that read only constants run then."""

    name: str
    shape: tuple[AnyExtent, ...]
    dtype: DType
    constant: bool

    __repr__ = Tensor.__repr__


@node
class ComputeOp(Tensor):
    """``name[axes] = body``; *body* is a :class:`Reduce` over ``reduce_axes`` or contains none.

    Equal parts of *body* become one node, so definitions with equal :func:`structural_hash` are
    treated alike: costs, and steps that number loads, do not depend on the Python code.
    ``attrs`` holds hints that the formula does not express; they never change its result.

    If there is a *routine*, it computes the tensor from those that *body* reads, in the order in
    which they appear; *body* then says nothing else but the type.
    """

    name: str
    shape: tuple[AnyExtent, ...]
    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    body: Expr
    attrs: Attrs = Attrs()
    routine: Routine | None = None
    dtype: DType = field(init=False)  # computed once, because it depends on all earlier stages

    __repr__ = Tensor.__repr__

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", unique_nodes(self.body))
        make_room(self.body)
        object.__setattr__(self, "dtype", self.body.dtype)


def placeholder(
    shape: Sequence[Extent],
    dtype: DType | str = DType.FLOAT32,
    *,
    name: str,
    constant: bool = False,
) -> PlaceholderOp:
    """Declare an input of *shape*; if *constant*, it is bound once, not passed in each call.

    Raises:
        TypeError: An extent is neither a whole number nor made of dimensions, or *name* is no text.
        ValueError: An extent is below 1, the type is unknown, or the shape of a constant depends on
            dimensions.
    """
    extents = _checked(shape, name)
    if constant and dims_of(extents):
        raise ValueError(f"{name}: a constant is bound once, so its shape cannot depend on a call")
    return PlaceholderOp(name, extents, as_dtype(dtype), constant)


def reduce_axis(extent: Extent, *, name: str) -> Axis:
    """Declare an axis to reduce over, with *extent* iterations.

    Raises:
        TypeError: *extent* is neither a whole number nor made of dimensions, or *name* is no text.
        ValueError: *extent* is below 1.
    """
    _demand_text(name)
    extent = _extent(extent, name)
    if isinstance(extent, int) and extent < 1:
        raise ValueError(f"reduce axis {name} has extent {extent}; it must be at least 1")
    return Axis(name, extent, AxisKind.REDUCE)


def compute(
    shape: Sequence[Extent],
    fn: Callable[..., ExprLike],
    *,
    name: str,
    attrs: Attrs | None = None,
    names: Sequence[str] | None = None,
) -> ComputeOp:
    """Define a tensor of *shape* elementwise: *fn* maps one index per dimension to an expression.

    Args:
        attrs: Hints to the rules, such as the operations to count instead of the body's.
        names: Axis names; the default is *fn*'s parameter names.

    Raises:
        TypeError: The number of *fn*'s parameters or of *names* differs from the number of
            dimensions of *shape*, *fn* gives no expression, or *attrs* are not :class:`Attrs`.
        ValueError: There is a reduction below the root, a zero extent, an axis name used twice, or
            an axis that is neither an index of *fn* nor reduced over; or *attrs* name an unknown
            axis.
    """
    extents = _checked(shape, name)
    names = _axis_names(fn, len(extents)) if names is None else tuple(names)
    _demand_text(*names)
    if len(names) != len(extents):
        raise TypeError(f"{name}: {len(names)} axes are named, the shape has {len(extents)}")
    axes = tuple(
        Axis(axis, extent, AxisKind.SPACE) for axis, extent in zip(names, extents, strict=True)
    )
    value = fn(*axes)
    demand_no_truth(value)
    body = as_expr(value)
    reduce_axes = body.axes if isinstance(body, Reduce) else ()
    _demand_sound(name, body, (*axes, *reduce_axes))
    taken = [axis.name for axis in (*axes, *reduce_axes)]
    if len(set(taken)) != len(taken):
        raise ValueError(f"{name}: axis names must differ, got {', '.join(taken)}")
    attrs = attrs or Attrs()
    if not isinstance(attrs, Attrs):
        raise TypeError(f"{name}: attrs are given by ap.Attrs(...), got {attrs!r}")
    unknown = sorted(attrs.axes - set(taken))
    if unknown:
        raise ValueError(
            f"{name}: attrs name {', '.join(unknown)}, but the axes are {', '.join(taken)}"
        )
    return ComputeOp(name, extents, axes, reduce_axes, body, attrs)


def _demand_sound(name: str, body: Expr, axes: Sequence[Axis]) -> None:
    """Check that *body* reduces at its root only, and uses operands that fit, and no other axes."""
    inside = list(walk(body.source if isinstance(body, Reduce) else body))
    if any(isinstance(e, Reduce) for e in inside):
        raise ValueError(f"{name}: a reduction must be the whole body; give it its own compute")
    for e in inside:
        problem = misfit(e)
        if problem is not None:
            raise TypeError(f"{name}: {problem}; convert with .astype(...)")
    strangers = sorted({e.name for e in inside if isinstance(e, Axis) and e not in axes})
    if strangers:
        raise ValueError(
            f"{name} uses {', '.join(strangers)}, which are neither its axes nor reduced over"
        )


def computed_by(
    routine: Routine,
    inputs: Sequence[Tensor],
    shape: Sequence[Extent],
    dtype: DType,
    *,
    name: str,
) -> ComputeOp:
    """Define a tensor of *shape* that *routine* computes from *inputs*.

    Raises:
        ValueError: An extent is zero or may be negative, or two inputs are the same tensor.
    """
    if len(set(inputs)) < len(inputs):
        raise ValueError(f"{name}: a routine reads each input once")
    extents = _checked(shape, name)
    axes = tuple(Axis(f"i{d}", extent, AxisKind.SPACE) for d, extent in enumerate(extents))
    first = [Load(x, (const(0),) * x.ndim).astype(dtype) for x in inputs]
    body = reduce(lambda a, b: Binary(BinaryOp.MAX, a, b), first)
    return ComputeOp(name, extents, axes, (), body, Attrs(), routine)


def _demand_text(*names: object) -> None:
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"a name is a text, got {wrong[0]!r}")


def _extent(given: Extent, name: str) -> Extent:
    if isinstance(given, Symbolic):
        return given
    try:
        return index(given)
    except TypeError:
        hint = "; give it alone, axes begin at 0" if isinstance(given, tuple) else ""
        raise TypeError(f"{name}: an extent is a whole number, got {given!r}{hint}") from None


def _checked(shape: Sequence[Extent], name: str) -> tuple[Extent, ...]:
    _demand_text(name)
    if not isinstance(shape, Iterable):
        raise TypeError(f"{name}: the shape is a tuple of extents, got {shape!r}")
    extents = tuple(_extent(e, name) for e in shape)
    if any(isinstance(extent, int) and extent < 1 for extent in extents):
        raise ValueError(f"{name}: every extent must be at least 1, got {extents}")
    if any(least(extent) < 0 for extent in extents):
        raise ValueError(f"{name}: an extent may be negative: {extents}")
    return extents


def _axis_names(fn: Callable[..., ExprLike], ndim: int) -> tuple[str, ...]:
    parameters = list(inspect.signature(fn).parameters.values())
    if len(parameters) == 1 and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple(f"i{d}" for d in range(ndim))
    if len(parameters) != ndim:
        raise TypeError(f"the function takes {len(parameters)} indices, the shape has {ndim}")
    return tuple(p.name for p in parameters)
