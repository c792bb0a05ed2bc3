"""Inputs and outputs of a compiled program: name, shape, element type, and checks on arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ansorpy.dlpack import bfloat16_array
from ansorpy.errors import UsageError
from ansorpy.ir.narrow import Narrow, element_type
from ansorpy.notebook import grid

if TYPE_CHECKING:
    from ansorpy.arrays import Array
    from ansorpy.ir.extents import AnyExtent
    from ansorpy.size_bounds import Bound

__all__ = [
    "MAX_RANK", "ON_CPU", "CTensor", "Port", "accepted", "array_of", "c_tensors",
    "check_array", "check_kind", "described", "dlpack_device", "fits", "host_array", "one_of",
    "own_result", "ports_grid",
]  # fmt: skip


ON_CPU = (1, 3)
"""DLPack's device types of plain and pinned host memory."""

MAX_RANK = 8
"""Maximum rank of a tensor in the C interface."""

_ONNX_TYPES = {"float64": "double", "float32": "float"} | {
    kind.value: kind.name.lower() for kind in Narrow
}


@dataclass(frozen=True)
class Port:
    """One input or output, dense and row-major.

    Extents are expressions of dimensions if calls state their sizes (:mod:`ansorpy.runtime.sizes`).
    If the elements of an input are sizes, *bound* is what each may be.
    """

    name: str
    shape: tuple[AnyExtent, ...]
    dtype: np.dtype[np.generic]
    bound: Bound | None = None

    @property
    def type(self) -> str:
        """The element type in onnxruntime's notation: ``tensor(float)``."""
        return f"tensor({_ONNX_TYPES.get(self.dtype.name, self.dtype.name)})"

    @property
    def bytes(self) -> AnyExtent:
        """Of the memory that compiled code reads or writes."""
        size = math.prod(self.shape)
        kind = element_type(self.dtype.name)
        return kind.bytes_of(size) if isinstance(kind, Narrow) else size * kind.bytes


class CTensor(ctypes.Structure):
    """``<name>_tensor`` of the C interface: an address and a shape."""

    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * MAX_RANK)]


def c_tensors(ports: Sequence[Port]) -> ctypes.Array[CTensor]:
    """The tensor table of a C call for *ports*, one entry each, without addresses.

    Extents that are no numbers are left 0.
    """
    table = (CTensor * max(1, len(ports)))()
    for number, port in enumerate(ports):
        for axis, extent in enumerate(port.shape):
            if isinstance(extent, int):
                table[number].shape[axis] = extent
    return table


def dlpack_device(value: Any) -> int | None:
    """The type of device, in DLPack's numbers, whose memory holds *value*; None if unknown."""
    ask = getattr(value, "__dlpack_device__", None)
    return None if ask is None else int(ask()[0])


def host_array(role: str, port: Port, value: Any) -> Any:
    """*value* as a numpy array of the same memory if it supports DLPack on the CPU, or as it is.

    Raises:
        UsageError: It does not hand its memory over.
    """
    if isinstance(value, np.ndarray) or dlpack_device(value) not in ON_CPU:
        return value
    try:
        if port.dtype.name == "bfloat16":
            found = bfloat16_array(value, port.dtype)
            if found is not None:
                return found
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise UsageError(f"{role} {port.name!r} cannot be used: {error}") from error


def check_array(role: str, port: Port, value: object, *, written: bool = False) -> Array:
    """Return *value* as the array that compiled code uses in place for *port*.

    Args:
        role: ``"input"``, ``"output"`` or ``"constant"``, for the message.
        value: A numpy array, or one in the CPU's memory that supports DLPack.
        written: The array is written to.

    Raises:
        UsageError: It has another shape, type or layout, or is read-only but must be written.
    """
    array = check_kind(role, port, value, written=written)
    if fits(port, array):
        if written and not array.flags.writeable:
            raise UsageError(f"{role} {port.name!r} is read-only", hint=_empty(port))
        return array
    lacks = "aligned" if array.flags.c_contiguous else "contiguous"
    hint = _empty(port) if written else 'pass a copy: np.array(array, order="C")'
    raise UsageError(f"{role} {port.name!r} is not {lacks} in memory", hint=hint)


def check_kind(role: str, port: Port, value: object, *, written: bool = False) -> Array:
    """Return *value* as a numpy array of the same memory; it is *written* to, or read.

    Raises:
        UsageError: Its shape or type is not that of *port*, or it is no array.
    """
    array = host_array(role, port, value)
    if not isinstance(array, np.ndarray):
        raise UsageError(
            f"{role} {port.name!r} must be a numpy array, got {type(array).__name__}",
            hint=f"pass {described(port.shape, port.dtype)}, of numpy or of a library with DLPack",
        )
    if array.shape != port.shape or array.dtype != port.dtype:
        converted = None
        if array.shape == port.shape:
            converted = f'convert it: np.asarray(array, "{port.dtype}")'
        raise UsageError(
            f"{role} {port.name!r} takes {described(port.shape, port.dtype)}, "
            f"got {described(array.shape, array.dtype)}",
            hint=_empty(port) if written else converted,
        )
    return array


def _empty(port: Port) -> str:
    """The hint that names an array to write the output *port* to."""
    return f'pass np.empty({port.shape}, "{port.dtype}")'


def array_of(name: str, value: object) -> Array:
    """The input *name* as a numpy array, which is *value* itself if it is one.

    Raises:
        UsageError: numpy makes no array of it, as of a list of unequal rows.
    """
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"input {name!r} cannot be used: {error}") from error


def accepted(port: Port, value: object) -> Array:
    """Return *value* as an array that compiled code can read, copying it if not contiguous."""
    array = array_of(port.name, host_array("input", port, value))
    if not fits(port, array):
        array = check_array("input", port, np.require(array, requirements=("C", "A")))
    return array


def fits(port: Port, array: Array) -> bool:
    """Return whether *array* has the shape, type and layout of *port*."""
    dtype, flags = array.dtype, array.flags
    same = array.shape == port.shape and (dtype is port.dtype or dtype == port.dtype)
    return same and flags.c_contiguous and flags.aligned


def described(shape: Sequence[int], dtype: np.dtype[Any]) -> str:
    """Format a shape and type for messages: ``1x3x224x224 of float32``."""
    return f"{'x'.join(map(str, shape)) or 'a scalar'} of {dtype}"


def own_result(given: Any, array: Any, result: Any) -> Any:
    """What a call returns for the output that it wrote to *array*, the memory of the *given* one.

    *result* is *array* itself, or the part of it that a run has filled.
    """
    return given if result is array else result


def ports_grid(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """A row of HTML for each input and output."""
    rows = [
        (role, port.name, f"{port.dtype}[{', '.join(map(str, port.shape))}]")
        for role, ports in (("input", inputs), ("output", outputs))
        for port in ports
    ]
    return grid(("", "name", "type"), rows)


def one_of(ports: Iterable[Port]) -> str:
    """The names of *ports*, for messages."""
    return ", ".join(repr(port.name) for port in ports) or "none"
