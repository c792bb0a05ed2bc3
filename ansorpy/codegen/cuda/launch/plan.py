"""Launch plan of a GPU program: its kernels in launch order, and their workspace.

Besides the code, a caller needs only a :class:`LaunchPlan`: allocate ``workspace_bytes`` once, and
launch every kernel of :meth:`LaunchPlan.at` in order on one stream, which also orders their memory
accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, NamedTuple

from ansorpy.codegen.extent_fields import DimField, ExtentField
from ansorpy.ir.extents import Extent, prod_of
from ansorpy.ir.sizes import at, fixed
from ansorpy.ir.symbols import Dim

__all__ = [
    "ALIGNMENT", "STRIDE_UNIT", "Argument", "BoxedTensor", "Encoding", "Extents", "Grid", "Launch",
    "LaunchPlan",
]  # fmt: skip

ALIGNMENT = 16
"""Bytes of the widest access of a thread.  CUDA's own allocations are aligned to 256."""

Extents = tuple[int, int, int]
"""Extents along x, y and z."""

Grid = tuple[ExtentField, ExtentField, ExtentField]
"""Blocks along x, y and z; expressions of dimensions where they depend on the call."""


@dataclass(frozen=True)
class BoxedTensor:
    """A dense tensor as the copy engine reads it: in boxes, with zeros beyond its ends.

    ``shape`` and ``box`` are extents, outermost first; ``swizzle`` is the number of bytes in the
    innermost extent of a box, whose 16-byte units are permuted.
    """

    element_bytes: int
    shape: tuple[ExtentField, ...]
    box: tuple[int, ...]
    swizzle: int

    @property
    def encoding(self) -> Encoding:
        """The arguments of ``cuTensorMapEncodeTiled``, innermost dimension first."""
        extents = self.shape[::-1]
        strides = (prod_of(extents[:d]) * self.element_bytes for d in range(1, len(extents)))
        return Encoding(
            _TYPES[self.element_bytes], extents, tuple(strides), self.box[::-1],
            _SWIZZLES[self.swizzle],
        )  # fmt: skip


class Encoding(NamedTuple):
    """Arguments of ``cuTensorMapEncodeTiled``; ``strides`` are in bytes.

    Extents of 0, of which no box is copied, must be passed as 1.
    """

    element_type: int
    extents: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    box: tuple[int, ...]
    swizzle: int


STRIDE_UNIT = 16
"""Bytes of which strides are multiples."""

_TYPES = {1: 0, 2: 1, 4: 2}
"""CUDA's codes of unsigned integers, by their bytes: copies do not interpret elements."""

_SWIZZLES = {32: 1, 64: 2, 128: 3}
"""CUDA's codes of swizzles, by the bytes of a row."""


@dataclass(frozen=True)
class Argument:
    """One argument that a kernel receives: a pointer, a tensor to copy from in boxes, or a size.

    Args:
        name: The buffer it points to, or the dimension.
        place: ``parameter``: the program's parameter number ``position``.  ``workspace``: byte
            ``position`` of the workspace.  ``size``: the size of dimension number ``position``,
            passed by value.
        alignment: Required alignment of the address in bytes: that of an element if the tensor
            is part of another one, that of the widest access otherwise.
        boxes: The tensor at that address, if the kernel receives a tensor map of it instead of the
            pointer (CUDA's ``CUtensorMap``, by value).
    """

    name: str
    place: Literal["parameter", "workspace", "size"]
    position: int
    alignment: int = ALIGNMENT
    boxes: BoxedTensor | None = None

    def at(self, sizes: Mapping[Dim, int]) -> Argument:
        """This argument with numbers for the extents of its tensor."""
        if self.boxes is None:
            return self
        shape = tuple(at(extent, sizes) for extent in self.boxes.shape)
        return replace(self, boxes=replace(self.boxes, shape=shape))


@dataclass(frozen=True)
class Launch:
    """One kernel: its name in the module, its grid and block extents, and its arguments.

    Shared memory is declared in the kernel (``static_shared_bytes``) up to the default limit of a
    block; beyond that limit, all of it is passed at launch (``dynamic_shared_bytes``).  The kernel
    is launched in calls where all of ``where`` are positive and the grid has a block.
    """

    kernel: str
    grid: Grid
    block: Extents
    arguments: tuple[Argument, ...]
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    where: tuple[ExtentField, ...] = ()

    @property
    def threads(self) -> int:
        """Number of threads per block."""
        return prod(self.block)

    @property
    def shared_bytes(self) -> int:
        return self.static_shared_bytes + self.dynamic_shared_bytes


@dataclass(frozen=True)
class LaunchPlan:
    """Kernels in launch order; see the module's docstring.  A call states the sizes of ``dims``."""

    launches: tuple[Launch, ...]
    workspace_bytes: int
    dims: tuple[DimField, ...] = ()

    def at(self, sizes: Sequence[int]) -> tuple[Launch, ...]:
        """The launches of a call with these *sizes* of ``dims``; their grids are numbers."""
        if not self.dims:
            return self.launches
        known = dict(zip(self.dims, sizes, strict=True))
        found = []
        for launch in self.launches:
            x, y, z = (fixed(at(extent, known)) for extent in launch.grid)
            if min(x, y, z, *(fixed(at(extent, known)) for extent in launch.where)) > 0:
                arguments = tuple(argument.at(known) for argument in launch.arguments)
                found.append(replace(launch, grid=(x, y, z), arguments=arguments, where=()))
        return tuple(found)
