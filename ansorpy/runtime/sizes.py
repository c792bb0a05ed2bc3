"""Inputs and outputs at the sizes that the arrays of a call state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ansorpy.errors import UsageError
from ansorpy.ir.extents import Extent, Symbolic, dims_of
from ansorpy.ir.sizes import at, at_most, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.ports import Port

__all__ = ["Ports", "SizedPorts", "Told", "sizes_told", "told_by"]

Ports = tuple[tuple[Port, ...], tuple[Port, ...]]
"""Inputs and outputs."""
_KEPT = 4096
"""Sizes whose ports are remembered."""


@dataclass(frozen=True)
class Told:
    """Where a call states a size: ``shape[axis] == scale * dim + offset`` of input *number*."""

    dim: Dim
    number: int
    axis: int
    scale: int
    offset: int


def told_by(inputs: Sequence[Port], also: Sequence[Dim] = ()) -> tuple[Told, ...]:
    """Where calls state the size of each dimension of *inputs*, in order of appearance.

    Args:
        also: Further dimensions, which must be among them.

    Raises:
        UsageError: No extent depends on one of the dimensions alone, and linearly.
    """
    found: dict[Dim, Told] = {}
    for number, port in enumerate(inputs):
        for axis, extent in enumerate(port.shape):
            match extent:
                case Symbolic(terms=(((Dim() as dim,), scale), *rest)) if _is_number(rest):
                    offset = rest[0][1] if rest else 0
                    found.setdefault(dim, Told(dim, number, axis, scale, offset))
    for dim in (*dims_of(extent for port in inputs for extent in port.shape), *also):
        if dim not in found:
            raise UsageError(
                f"the shapes of a call's arrays do not tell the size of {dim.name}",
                hint=f"give an input an axis of extent {dim.name}",
            )
    return tuple(found.values())


def _is_number(terms: Sequence[Any]) -> bool:
    return not terms or (len(terms) == 1 and terms[0][0] == ())


@dataclass(frozen=True)
class SizedPorts:
    """The inputs and outputs of a program with dimensions.

    ``counted`` are those that no input tells: the program counts their sizes.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    told: tuple[Told, ...]
    counted: tuple[Dim, ...] = ()
    _known: dict[tuple[object, ...], Ports] = field(default_factory=dict)

    @cached_property
    def _extents(self) -> dict[Extent, int]:
        """The distinct extents, with their numbers."""
        ports = (*self.inputs, *self.outputs)
        return {e: n for n, e in enumerate(dict.fromkeys(e for p in ports for e in p.shape))}

    @cached_property
    def _numbers(self) -> tuple[list[tuple[Port, list[int]]], ...]:
        """The numbers of the extents of each input and output."""
        known = self._extents
        return tuple(
            [(port, [known[extent] for extent in port.shape]) for port in ports]
            for ports in (self.inputs, self.outputs)
        )

    @staticmethod
    def of(inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> SizedPorts | None:
        """The ports, or None if all shapes are numbers.

        Raises:
            UsageError: The shapes of the inputs do not tell the sizes.
        """
        ports = (*inputs, *outputs)
        if not dims_of(extent for port in ports for extent in port.shape):
            return None
        told = told_by(inputs)
        known = {one.dim for one in told}
        made = dims_of(extent for port in outputs for extent in port.shape)
        return SizedPorts(inputs, outputs, told, tuple(dim for dim in made if dim not in known))

    def at(self, arrays: Sequence[Any]) -> Ports:
        """The ports for *arrays*, one for each input, whose other extents are not checked.

        Outputs have the largest sizes of what the program counts.

        Raises:
            UsageError: An array has no shape or another rank, or a size is out of range.
        """
        shapes = tuple(getattr(array, "shape", None) for array in arrays)
        found = self._known.get(shapes)
        if found is None:
            sizes = sizes_told(self.inputs, self.told, shapes)
            capacities = {dim: dim.high for dim in self.counted}
            values = fixed_all(at_most(at(extent, sizes), capacities) for extent in self._extents)
            inputs, outputs = (
                tuple([Port(p.name, tuple([values[n] for n in own]), p.dtype) for p, own in ports])
                for ports in self._numbers
            )
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[shapes] = inputs, outputs
        return found


def sizes_told(
    inputs: Sequence[Port], told: Sequence[Told], shapes: Sequence[object]
) -> dict[Dim, int]:
    """The sizes that a call states whose *inputs* have these *shapes*.

    Raises:
        UsageError: A shape is none or has another rank, or a size is out of range.
    """
    return {one.dim: _size(inputs[one.number], one, shapes[one.number]) for one in told}


def _size(port: Port, told: Told, shape: object) -> int:
    dim = told.dim
    if not isinstance(shape, tuple) or len(shape) != len(port.shape):
        given = f"{len(shape)} axes" if isinstance(shape, tuple) else "no shape"
        raise UsageError(f"input {port.name!r} has {len(port.shape)} axes, got {given}")
    size, left = divmod(int(shape[told.axis]) - told.offset, told.scale)
    inside = dim.low <= size <= dim.high and size % dim.step == 0
    if left or not inside:
        extent = port.shape[told.axis]
        every = f", a multiple of {dim.step}" if dim.step > 1 else ""
        raise UsageError(
            f"axis {told.axis} of input {port.name!r} has {shape[told.axis]} elements, but its "
            f"extent is {extent}, where {dim.name} is from {dim.low} to {dim.high}{every}"
        )
    return size
