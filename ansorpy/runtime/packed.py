"""Arrays of 4- and 2-bit elements, which numpy keeps one a byte but compiled code packs.

Code reads and writes the packed bytes at the start of an array of the usual shape and type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.ir.narrow import Narrow, element_type, packed, unpacked
from ansorpy.runtime.ports import Port, check_kind

if TYPE_CHECKING:
    from ansorpy.arrays import Array

__all__ = ["packed_input", "packed_kinds", "unpack", "with_packing"]


def packed_kinds(ports: Iterable[Port]) -> dict[int, Narrow]:
    """The types of those *ports* that have several elements in a byte, by their numbers."""
    kinds = {number: element_type(port.dtype.name) for number, port in enumerate(ports)}
    return {
        number: kind
        for number, kind in kinds.items()
        if isinstance(kind, Narrow) and kind.in_a_byte > 1
    }


def packed_input(port: Port, kind: Narrow, value: object) -> Array:
    """An array like *value* that starts with its packed bytes; nothing reads the rest.

    Raises:
        UsageError: Its shape or type is not that of *port*.
    """
    array = check_kind("input", port, value)
    made = np.empty(array.shape, array.dtype)
    _pack(made, array, kind)
    return made


def _pack(to: Array, array: Array, kind: Narrow) -> None:
    found = packed(array, kind)
    to.reshape(-1).view(np.uint8)[: found.size] = found


def unpack(array: Array, kind: Narrow) -> None:
    """Replace the packed bytes at the start of *array* by its elements."""
    stored = array.reshape(-1).view(np.uint8)[: kind.bytes_of(array.size)]
    array[...] = unpacked(stored.copy(), kind, array.size).reshape(array.shape)


def with_packing(
    run: Callable[[], None],
    inputs: Sequence[tuple[Array, Array, Narrow]],
    outputs: Sequence[tuple[Array, Narrow]],
) -> Callable[[], None]:
    """*run*, with packed copies of some inputs made before it, and outputs unpacked after it.

    It has the attributes of *run*: ``seconds`` on a GPU.

    Args:
        inputs: Copies that *run* reads, the arrays of which they are copies, and their types.
        outputs: Arrays that *run* writes to, and their types.
    """

    @wraps(run)
    def packing() -> None:
        for copy, array, kind in inputs:
            _pack(copy, array, kind)
        run()
        for array, kind in outputs:
            unpack(array, kind)

    return packing
