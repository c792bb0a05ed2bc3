"""Generate a library's C header and a complete example program that calls it."""

from __future__ import annotations

import math
from pathlib import Path

from ansorpy.ir.dtypes import DType
from ansorpy.runtime.library.metadata import Metadata, TensorSpec
from ansorpy.runtime.ports import MAX_RANK
from ansorpy.runtime.status import Status
from ansorpy.runtime.templates import rendered

__all__ = ["beside", "write_header"]

_C_TYPES = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t", DType.BOOL: "uint8_t",
}  # fmt: skip


def beside(library: Path) -> tuple[Path, Path]:
    """The header ``<stem>.h`` and the example ``<stem>_example.c`` of *library*."""
    return library.with_suffix(".h"), library.with_name(f"{library.stem}_example.c")


def write_header(metadata: Metadata, library: Path) -> None:
    """Write the files :func:`beside` *library*."""
    header, example = beside(library)
    values = {
        "library": library.name,
        "link": _link(library, metadata.threads),
        "is_source": library.suffix == ".c",
        "header": header.name,
        "example": example.name,
        "name": metadata.name,
        "guard": f"{metadata.name.upper()}_H",
        "upper": metadata.name.upper(),
        "metadata": metadata,
        "inputs": [_described(tensor) for tensor in metadata.inputs],
        "outputs": [_described(tensor) for tensor in metadata.outputs],
        "max_rank": MAX_RANK,
        "statuses": list(Status),
    }
    header.write_text(rendered("library.h.j2", values))
    example.write_text(rendered("example.c.j2", values))


def _link(library: Path, threads: int) -> str:
    """The compiler arguments that link the example with the library, or with the C file itself."""
    if library.suffix == ".c":
        return f"{library.name} -lm{' -fopenmp' if threads > 1 else ''} -o example"
    return f"-o example ./{library.name} -Wl,-rpath,'$ORIGIN'"


def _described(tensor: TensorSpec) -> dict[str, object]:
    """Values the templates use for one tensor."""
    dtype = tensor.dtype
    return {
        # A name may contain characters that would end a C comment.
        "name": tensor.name.replace("*/", "* /").replace("\\", "/").replace("\n", " "),
        "shape": list(tensor.shape),
        "dtype": dtype.value,
        "c_type": _C_TYPES.get(dtype, f"{dtype.value}_t"),
        "count": math.prod(tensor.shape),
        "is_float": dtype in (DType.FLOAT32, DType.FLOAT64),
    }
