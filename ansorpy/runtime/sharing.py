"""Arrays of outputs that continue an input in its own memory (:class:`ansorpy.ir.alias.Alias`).

A caller passes parts of larger arrays: ``memory[:, :, :n]`` as the input and
``memory[:, :, : n + 1]`` as the output.  Their strides tell the capacity of the memory.  Other
outputs lie apart from all arrays (:func:`refuse_overlap`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ansorpy.codegen.llvm.objects.memory import address_of
from ansorpy.errors import UsageError
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import most
from ansorpy.ir.strides import dense_strides
from ansorpy.runtime.ports import Port, check_kind

if TYPE_CHECKING:
    from ansorpy.arrays import Array

__all__ = ["Range", "Sharing", "capacity_of", "not_shared", "reach_of", "refuse_overlap"]

Range: TypeAlias = tuple[int, int, int]
"""Where an array begins and ends, and the number of the output that it is; below 0 for inputs."""


def capacity_of(alias: Alias, array: Array) -> int:
    """The extent along the axis of the memory of which *array* is the first part.

    It is that of the array itself if its strides do not depend on it, and negative if its strides
    are not those of a dense array of any capacity.
    """
    return _capacity(alias.axis, array.shape, array.strides, array.itemsize)


@lru_cache(maxsize=4096)
def _capacity(axis: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Remembered, because a decoder has dozens of caches of the same shape."""
    capacity, inner = shape[axis], math.prod(shape[axis + 1 :]) * itemsize
    for before in range(axis - 1, -1, -1):
        if shape[before] != 1:
            capacity = strides[before] // max(inner * math.prod(shape[before + 1 : axis]), 1)
            break
    wanted = _strides(axis, shape, capacity, itemsize)
    columns = zip(shape, strides, wanted, strict=True)
    is_right = 0 in shape or all(n == 1 or step == right for n, step, right in columns)
    return capacity if is_right else -1


def reach_of(array: Array) -> int:
    """Bytes from the first to behind the last element of *array*."""
    return _reach(array.shape, array.strides, array.itemsize)


@lru_cache(maxsize=4096)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    if 0 in shape:
        return 0
    return sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + itemsize


def not_shared(output: str, given: str) -> UsageError:
    """The error of a call whose *output* does not lie where its input *given* does."""
    return UsageError(
        f"the array for output {output!r} does not continue that for input {given!r} in its "
        "memory, where only what is new is written",
        hint="pass parts of one array, such as memory[:, :n] and memory[:, : n + 1]",
    )


def refuse_overlap(outputs: Sequence[Port], used: Iterable[Range]) -> None:
    """Raise :class:`UsageError` if one of *outputs* overlaps another array of *used*."""
    reach = written = last = 0
    for start, end, number in sorted(used):
        is_output = number >= 0
        if start == end:
            continue
        if start < (reach if is_output else written):
            port = outputs[number if is_output else last]
            raise UsageError(
                f"the array for output {port.name!r} shares memory with another input or output",
                hint="pass a separate array",
            )
        reach = max(reach, end)
        if is_output:
            written, last = end, number


class Sharing:
    """The pairs of inputs and outputs of a program that share memory."""

    def __init__(
        self, aliases: Sequence[Alias], inputs: Sequence[Port], outputs: Sequence[Port]
    ) -> None:
        self.inputs = {alias.input: alias for alias in aliases}
        self.outputs = {alias.output: alias for alias in aliases}
        self._given = [port.name for port in inputs]
        self._ranks = [len(port.shape) for port in inputs]
        self._made = [port.name for port in outputs]
        self._largest = {a.output: most(outputs[a.output].shape[a.axis]) for a in aliases}

    def __bool__(self) -> bool:
        return bool(self.inputs)

    def with_room(self, number: int, array: Array, capacity: int | None) -> Array:
        """A copy of *array*, input *number*, that is the first part of an array with room.

        Raises:
            UsageError: *capacity* is below the extent of *array*, or above that of any output, or
                *array* has another number of axes than the input.
        """
        alias = self.inputs[number]
        if array.ndim != self._ranks[number]:
            raise UsageError(
                f"input {self._given[number]!r} has {self._ranks[number]} axes, got {array.ndim}"
            )
        rows, largest = array.shape[alias.axis], self._largest[alias.output]
        room = largest if capacity is None else capacity
        if not rows <= room <= largest:
            raise UsageError(
                f"memory for input {self._given[number]!r}, which has {rows} elements along axis "
                f"{alias.axis}, cannot have room for {room}",
                hint=f"give a capacity up to {largest}",
            )
        # Not of aligned memory, whose beginning varies, and with it the room that is seen behind.
        whole = np.zeros(_with(array.shape, alias.axis, room), array.dtype)
        part = whole[(slice(None),) * alias.axis + (slice(rows),)]
        part[...] = array
        return part

    def check_input(self, number: int, port: Port, array: Any) -> Array:
        """Return *array*, which must be a part of memory like that of *port*, input *number*.

        Raises:
            UsageError: It is not, or has another shape or type.
        """
        return self._checked("input", self.inputs[number], port, array)

    def fill(
        self, arrays: list[Any], outputs: Sequence[Any | None], ports: Sequence[Port]
    ) -> list[Any | None]:
        """*outputs*, with the arrays in the memory of inputs where they are None.

        In *arrays*, an input without elements is replaced by one in the memory of its output.

        Raises:
            UsageError: An input has no room for its output, or capacities that must be equal
                differ.
        """
        found = list(outputs)
        capacities: dict[object, int] = {}
        for number, alias in self.outputs.items():
            port, given = ports[number], found[number]
            if given is None:
                given = found[number] = self._continued(alias, arrays[alias.input], port)
            else:
                arrays[alias.input] = self._paired(alias, arrays[alias.input], given)
            self._demand_room(alias, port, given)
            if alias.capacity is not None:
                capacity = capacity_of(alias, given)
                if capacities.setdefault(alias.capacity, capacity) != capacity:
                    raise UsageError(
                        f"the memory of output {port.name!r} has room for {capacity} elements "
                        f"along axis {alias.axis}, but that of another one for "
                        f"{capacities[alias.capacity]}",
                        hint="outputs that grow together need memory of the same capacity",
                    )
        return found

    def check_output(self, number: int, port: Port, value: Any) -> Array:
        """Return *value*, which will be written; it must be a part of memory like that of *port*.

        Raises:
            UsageError: It is not, has another shape or type, or is read-only.
        """
        array = self._checked("output", self.outputs[number], port, value)
        if not array.flags.writeable:
            raise UsageError(f"output {port.name!r} is read-only")
        return array

    def _checked(self, role: str, alias: Alias, port: Port, array: Any) -> Array:
        made = check_kind(role, port, array)
        if capacity_of(alias, made) < 0 or not made.flags.aligned:
            raise UsageError(
                f"{role} {port.name!r} is not the first part, along axis {alias.axis}, of a "
                "contiguous array",
                hint=f"pass memory[{':, ' * alias.axis}:{made.shape[alias.axis]}]",
            )
        return made

    def _paired(self, alias: Alias, array: Array, output: Array) -> Array:
        """The input *array*, or one without elements, in the memory of *output*."""
        if not array.size:
            return output[(slice(None),) * alias.axis + (slice(0),)]
        is_alike = capacity_of(alias, array) == capacity_of(alias, output)
        if not is_alike and math.prod(array.shape[: alias.axis]) != 1:
            raise not_shared(self._made[alias.output], self._given[alias.input])
        return array

    def _continued(self, alias: Alias, array: Array, port: Port) -> Array:
        """The array for output *port* in the memory of the input *array*."""
        whole: Any = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        strides = _strides(alias.axis, port.shape, capacity_of(alias, array), array.itemsize)
        start = address_of(array) - address_of(whole)
        end = start + _reach(port.shape, strides, array.itemsize)
        if not whole.flags.c_contiguous or end > whole.nbytes:
            raise self._no_room(alias, port)
        if not array.flags.writeable:
            raise UsageError(f"the memory of input {self._given[alias.input]!r} is read-only")
        made: Array = np.ndarray(port.shape, port.dtype, whole, start, strides)
        return made

    def _demand_room(self, alias: Alias, port: Port, array: Array) -> None:
        """Check that the memory of which the output *array* is a part has a possible capacity."""
        # Where the capacity does not matter, it is the extent of the output.
        total, capacity = port.shape[alias.axis], capacity_of(alias, array)
        if capacity < total:
            raise self._no_room(alias, port)
        most_ = total if alias.capacity is None else alias.capacity.high
        if capacity > most_:
            raise UsageError(
                f"the memory of output {port.name!r} has room for {capacity} elements along axis "
                f"{alias.axis}, but it was compiled for {most_} at most"
            )

    def _no_room(self, alias: Alias, port: Port) -> UsageError:
        return UsageError(
            f"input {self._given[alias.input]!r} is not a part of memory with room for the "
            f"{port.shape[alias.axis]} elements along axis {alias.axis} of output {port.name!r}",
            hint="let model.with_room(feeds) copy it to such memory, and pass the outputs of each "
            "call as inputs of the next one",
        )


def _with(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return *shape[:axis], extent, *shape[axis + 1 :]


def _strides(axis: int, shape: tuple[int, ...], capacity: int, itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a tensor of this *shape* in memory of this *capacity*."""
    steps = dense_strides(_with(shape, axis, capacity))
    return tuple(step * itemsize for step in steps)
