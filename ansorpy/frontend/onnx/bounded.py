"""Tensors that hold sizes which only a run knows, bounded by the user: they become dimensions."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.elements import Elements
from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import Cast, Elementwise, Fn, Reshape, Slice, TensorType
from ansorpy.ir.dtypes import DType
from ansorpy.size_bounds import Bound, bound_text

__all__ = ["GivenBounds", "may_have_bounds"]

_MOST_SIZES = 32
"""Numbers in a tensor that may be sizes: more than any shape has."""


def may_have_bounds(kind: TensorType) -> bool:
    """Whether a tensor of this type may hold sizes: one whole number, or a short list of them."""
    is_whole = not kind.dtype.is_float and kind.dtype is not DType.BOOL
    count = kind.size
    return is_whole and len(kind.shape) <= 1 and isinstance(count, int) and count <= _MOST_SIZES


class GivenBounds:
    """The bounds that a user gave, by the names of tensors, and those that have been used.

    Raises:
        UsageError: The *graph* has no tensor of some name.
    """

    def __init__(self, given: Mapping[str, Bound], graph: GraphProto):
        self._given = given
        inputs = (info.name for info in graph.input)
        names = {*inputs, *(name for node in graph.node for name in node.output)}
        for name in given:
            if name not in names:
                raise UsageError(
                    f"there is no tensor {name!r} that could have a bound",
                    hint="name an input or a node's result, outside of the bodies of loops",
                )
        self._used = set[str]()
        self._lengths = set[str]()

    def length(self, name: str) -> int | None:
        """How many rows the tensor *name* has at most; None if that is not bounded.

        Its elements are no sizes then.

        Raises:
            UsageError: The bound has several numbers, or says how many there are at least.
        """
        if name not in self._given:
            return None
        bound = self._given[name]
        ((low, high), *more) = bound
        if more or low:
            raise UsageError(
                f"{name}={bound_text(bound, name)} bounds a number of rows, which may be 0",
                hint=f"write {name}={high}",
            )
        self._used.add(name)
        self._lengths.add(name)
        return high

    def factors(self, name: str, count: int) -> Bound | None:
        """The bounds of *count* factors of sizes, in the tensor *name*; None if there are none.

        Raises:
            UsageError: There are bounds for another number of factors.
        """
        if name not in self._given:
            return None
        self._used.add(name)
        bound = self._given[name]
        if len(bound) not in (1, count):
            raise UsageError(f"{name} has {count} numbers and cannot have {len(bound)} bounds")
        return bound * (count // len(bound))

    def apply(
        self, builder: GraphBuilder, known: MutableMapping[str, Elements], name: str, value: str
    ) -> None:
        """Let the elements of the graph value *value* be dimensions, if the tensor *name*, which
        it is, has a bound.

        Raises:
            UsageError: It cannot hold sizes, is known already, or has another number of elements.
        """
        if name not in self._given or name in self._lengths:
            return
        kind = builder.types[value]
        if kind.dtype.is_float and may_have_bounds(replace(kind, dtype=DType.INT64)):
            return  # perhaps factors, which are no sizes
        self._used.add(name)
        if value in builder.constants or value in known:
            raise UsageError(
                f"{name} is known when the model is compiled, so it has no bound",
                hint="leave out its bound",
            )
        bound, count = self._given[name], kind.size
        if not may_have_bounds(kind) or len(bound) not in (1, count):
            given = "" if len(bound) == 1 else f" and cannot have {len(bound)} bounds"
            raise UsageError(
                f"{name} is {kind}{given}",
                hint="bound a whole number, a list of them, or the scales of a Resize; or what a "
                "Range or a Loop gives",
            )
        known[value] = np.asarray(
            _sizes(builder, name, value, bound * (count // len(bound))), object
        ).reshape(kind.shape)

    def demand_used(self) -> None:
        """Raise :class:`UsageError` if a bound has had no effect."""
        for name in self._given:
            if name not in self._used:
                raise UsageError(
                    f"{name} is known when the model is compiled, or nothing needs it",
                    hint="leave out its bound",
                )


def _sizes(builder: GraphBuilder, name: str, value: str, bound: Bound) -> list[object]:
    """The elements of *value* as extents."""
    count = len(bound)
    flat = builder.emit(Reshape((count,)), [value], f"{name}.sizes")
    if builder.types[flat].dtype is not DType.INT64:
        flat = builder.emit(Cast(DType.INT64), [flat], f"{name}.sizes")
    computed = builder.emit(Elementwise(Fn.MAX), [flat, flat], f"{name}.sizes")  # calls tell sizes
    made: list[object] = []
    for number, (low, high) in enumerate(bound):
        part = computed
        if count > 1:
            part = builder.emit(Slice((number,), (1,), (1,)), [computed], f"{name}.sizes")
        shown = f"{name}.size" if count == 1 else f"{name}.size.{number}"
        made.append(builder.counted(builder.emit(Reshape(()), [part], shown), high, low))
    return made
