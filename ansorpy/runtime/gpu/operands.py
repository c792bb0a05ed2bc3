"""What a caller passes a program on a GPU: arrays in the host's memory or in the GPU's.

Numpy arrays, whatever has ``__cuda_array_interface__`` (cupy, numba, torch), and whatever speaks
DLPack (``__dlpack__`` and ``__dlpack_device__``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ansorpy.errors import UsageError
from ansorpy.ir.strides import dense_strides
from ansorpy.runtime.ports import Array, Port, accepted, check_array, described

__all__ = ["Operand", "accept_operand", "check_operand", "operand"]

_ON_CPU = (1, 3)
"""DLPack's numbers of plain and of pinned host memory."""
_DEFAULT_STREAM = 1
"""CUDA's number of the stream that programs use which name none."""


@dataclass(frozen=True)
class Operand:
    """Where a tensor is: ``host`` memory, or an ``address`` of the GPU.

    ``stream`` is the CUDA stream whose work has to be done before it is used, if any; ``owner``
    keeps the memory.
    """

    host: Array | None
    address: int = 0
    nbytes: int = 0
    stream: int | None = None
    owner: object = None


def operand(role: str, port: Port, value: object, *, written: bool = False) -> Operand:
    """*value* for *port*.

    Raises:
        UsageError: It has another shape or type, is not dense, or may not be written to.
    """
    interface, owner = _interface(value)
    if interface is None:
        host = _from_dlpack(value)
        check_array(role, port, host, written=written)
        assert isinstance(host, np.ndarray)
        return Operand(host, owner=value)
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
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
    # Who says nothing of a stream (version 2, as torch does) uses the default one.
    stream = interface.get("stream", _DEFAULT_STREAM)
    return Operand(None, address, port.bytes, stream, owner)


def check_operand(role: str, port: Port, value: object, *, written: bool = False) -> None:
    """Raise :class:`UsageError` unless :func:`operand` takes *value*."""
    operand(role, port, value, written=written)


def accept_operand(port: Port, value: object) -> Any:
    """*value* as an input: one of the host's is made contiguous, one of a GPU's must be."""
    if _interface(value)[0] is None:
        return accepted(port, _from_dlpack(value))
    check_operand("input", port, value)
    return value


def _interface(value: Any) -> tuple[Mapping[str, Any] | None, object]:
    """``__cuda_array_interface__`` of *value*, also of what only speaks DLPack; and who owns it."""
    if isinstance(value, np.ndarray):
        return None, value
    found = getattr(value, "__cuda_array_interface__", None)
    if found is None and _dlpack_kind(value) not in (None, *_ON_CPU):
        from cupy import from_dlpack

        value = from_dlpack(value)
        found = value.__cuda_array_interface__
    return found, value


def _dlpack_kind(value: object) -> int | None:
    ask = getattr(value, "__dlpack_device__", None)
    return None if ask is None else int(ask()[0])


def _from_dlpack(value: Any) -> object:
    """The numpy array of host memory that *value* offers, or *value* itself."""
    if isinstance(value, np.ndarray) or _dlpack_kind(value) not in _ON_CPU:
        return value
    return np.from_dlpack(value)


def _is_dense(interface: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
    steps, shape = interface.get("strides"), tuple(interface["shape"])
    if steps is None:
        return True
    dense = [step * dtype.itemsize for step in dense_strides(shape)]
    return all(
        extent == 1 or given == wanted
        for extent, given, wanted in zip(shape, steps, dense, strict=True)
    )
