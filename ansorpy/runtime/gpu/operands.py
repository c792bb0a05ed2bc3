"""Arrays a caller passes to a GPU program, in host or GPU memory.

Accepted are numpy arrays, anything with ``__cuda_array_interface__`` (cupy, numba, torch), and
anything that supports DLPack (``__dlpack__`` and ``__dlpack_device__``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ansorpy.arrays import Array
from ansorpy.codegen.llvm.objects.memory import address_of
from ansorpy.config import DEVICE
from ansorpy.errors import UsageError
from ansorpy.ir.strides import dense_strides
from ansorpy.runtime.ports import ON_CPU, Port, accepted, check_array, described, dlpack_device

__all__ = ["DeviceOperand", "accept_operand", "check_operand", "operand"]

_CUDA = 2
"""DLPack's type of device of memory that belongs to one GPU."""

_DEFAULT_STREAM = 1
"""CUDA's handle of the default stream, for callers that specify none."""


Producer: TypeAlias = Callable[[int], None]
"""A function that makes the stream with a given handle wait for the work that computes an array."""


@dataclass(frozen=True)
class DeviceOperand:
    """Where a tensor is: *nbytes* at *address*, in GPU memory unless it is the array *host*.

    Before the tensor is used, the work of the CUDA ``stream``, if any, must finish, and
    ``producer``, if any, must be called with the stream that uses the tensor.  ``owner`` keeps the
    memory alive.
    """

    host: Array | None
    address: int = 0
    nbytes: int = 0
    stream: int | None = None
    producer: Producer | None = None
    owner: object = None


def operand(
    role: str, port: Port, value: object, *, written: bool = False, gpu: int | None = None
) -> DeviceOperand:
    """Return *value* as an operand for *port* of a program on GPU number *gpu*, if that is known.

    Raises:
        UsageError: *value* has the wrong shape or type, is not dense, is read-only but must be
            written, does not hand its memory over, or says that it is on another GPU.
    """
    interface, owner = _interface(role, port, value)
    if interface is None:
        host = check_array(role, port, value, written=written)
        address, nbytes = address_of(host), host.nbytes
        if host.nbytes != port.bytes:  # packed elements, at the start of an array of unpacked ones
            host = host.reshape(-1).view(np.uint8)[: port.bytes]
        return DeviceOperand(host, address, nbytes, owner=value)
    _refuse_other_gpu(role, port, value, gpu)
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if dtype.kind == "V" and interface["typestr"] == port.dtype.str:
        dtype = port.dtype  # of bfloat16, which numpy does not know, the text says only the size
    if (shape, dtype) != (port.shape, port.dtype):
        raise UsageError(
            f"{role} {port.name!r} takes {described(port.shape, port.dtype)}, "
            f"got {described(shape, dtype)}"
        )
    if not _is_dense(interface, dtype):
        raise UsageError(
            f"{role} {port.name!r} is not contiguous in memory", hint="pass a contiguous copy"
        )
    address, read_only = interface["data"]
    if written and read_only:
        raise UsageError(f"{role} {port.name!r} is read-only")
    if "stream" in interface:
        return DeviceOperand(None, address, port.bytes, interface["stream"], owner=owner)
    if not hasattr(value, "__dlpack__"):
        return DeviceOperand(None, address, port.bytes, _DEFAULT_STREAM, owner=owner)
    return DeviceOperand(
        None, address, port.bytes, producer=_producer(role, port, value), owner=owner
    )


def _producer(role: str, port: Port, value: Any) -> Producer:
    """A function that makes a stream wait for *value*'s own work, through the DLPack protocol."""

    def hand_over(stream: int) -> None:
        try:
            value.__dlpack__(stream=stream)  # the capsule is dropped: the address is known already
        except BufferError as error:
            raise UsageError(f"{role} {port.name!r} cannot be used: {error}") from error

    return hand_over


def check_operand(role: str, port: Port, value: object, *, written: bool = False) -> object:
    """Return *value*; raises :class:`UsageError` unless :func:`operand` accepts it."""
    operand(role, port, value, written=written)
    return value


def accept_operand(port: Port, value: object) -> Any:
    """Prepare *value* as an input: host arrays are made contiguous, GPU arrays must already be."""
    if _interface("input", port, value)[0] is None:
        return accepted(port, value)
    return check_operand("input", port, value)


def _interface(role: str, port: Port, value: Any) -> tuple[Mapping[str, Any] | None, object]:
    """Return *value*'s ``__cuda_array_interface__``, via DLPack if it lacks one, and its owner.

    The interface names no stream if it came via DLPack: the producer then orders the work.
    """
    if isinstance(value, np.ndarray):
        return None, value
    try:
        found = getattr(value, "__cuda_array_interface__", None)
        if found is None and dlpack_device(value) not in (None, *ON_CPU):
            from cupy import from_dlpack

            value = from_dlpack(value)
            found = {k: v for k, v in value.__cuda_array_interface__.items() if k != "stream"}
    except (BufferError, RuntimeError, TypeError) as error:  # a tensor that requires gradients
        raise UsageError(f"{role} {port.name!r} cannot be used: {error}") from error
    return found, value


def _refuse_other_gpu(role: str, port: Port, value: Any, gpu: int | None) -> None:
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None or gpu is None:
        return
    kind, number = map(int, ask())
    if kind == _CUDA and number != gpu:
        raise UsageError(
            f"{role} {port.name!r} is on GPU {number}, and the program on GPU {gpu}",
            hint=f"pass a copy on GPU {gpu}, or load the program with {DEVICE.name}={number}",
        )


def _is_dense(interface: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
    steps, shape = interface.get("strides"), tuple(interface["shape"])
    if steps is None:
        return True
    dense = [step * dtype.itemsize for step in dense_strides(shape)]
    return all(
        extent == 1 or given == wanted
        for extent, given, wanted in zip(shape, steps, dense, strict=True)
    )
