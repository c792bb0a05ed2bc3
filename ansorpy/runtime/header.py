"""Generate a library's C header and a complete example program that calls it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ansorpy.codegen.clike.comments import in_comment
from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import ElementType, Narrow, element_type
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent, helpers, size_names
from ansorpy.runtime.library.forms import Form, form_of, stem_of
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.ports import MAX_RANK, Port
from ansorpy.runtime.status import Status
from ansorpy.runtime.templates import rendered
from ansorpy.writable import replacing

__all__ = ["beside", "build_command", "c_type", "write_example", "write_header"]

_C_TYPES: Mapping[DType, str] = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t", DType.BOOL: "uint8_t",
}  # fmt: skip


def beside(library: Path) -> tuple[Path, Path]:
    """The header ``<stem>.h`` and the example ``<stem>_example.c`` of *library*."""
    stem = stem_of(library)
    return library.with_name(f"{stem}.h"), library.with_name(f"{stem}_example.c")


def write_header(metadata: Metadata, library: Path) -> None:
    """Write the header of *library*, where :func:`beside` puts it."""
    _write("library.h.j2", beside(library)[0], metadata, library)


def write_example(metadata: Metadata, library: Path) -> None:
    """Write the example program of *library*, where :func:`beside` puts it."""
    _write("example.c.j2", beside(library)[1], metadata, library)


def _write(template: str, path: Path, metadata: Metadata, library: Path) -> None:
    """Write *path*, which tells of *library*, from *template*."""
    dims, names = metadata.named_dims.values(), size_names(metadata.named_dims.values())
    inputs = [_described(port, names) for port in metadata.input_ports]
    values = {
        "library": library.name,
        "build": build_command(library, metadata.threads),
        "is_source": form_of(library) is Form.C,
        "header": beside(library)[0].name,
        "name": metadata.name,
        "upper": metadata.name.upper(),
        "metadata": metadata,
        "dims": [
            {
                "name": in_comment(dim.name),
                "variable": names[dim],
                "text": in_comment(str(dim)),
                "high": dim.high,
            }
            for dim in dims
            if dim.name not in metadata.counted
        ],
        "counted": [in_comment(str(dim)) for dim in dims if dim.name in metadata.counted],
        "inputs": inputs,
        "outputs": [_described(port, names) for port in metadata.output_ports],
        "aliases": metadata.aliases,
        "owners": {alias.input: alias.output for alias in metadata.aliases},
        "helpers": helpers(str([port["extents"] for port in inputs])),
        "max_rank": MAX_RANK,
        "statuses": list(Status),
    }
    with replacing(path) as made:
        made.write_text(rendered(template, values), encoding="utf-8")


def build_command(library: Path, threads: int) -> str:
    """The command that builds the example of *library*, whatever form it has, in its folder."""
    form, example = form_of(library), shlex.quote(beside(library)[1].name)
    file = shlex.quote(library.name)
    if form is Form.SO:
        return f"cc -O2 {example} -o example ./{file} -Wl,-rpath,'$ORIGIN'"
    compiler = "clang" if form is Form.LL else "cc"  # gcc reads no LLVM IR
    libraries = "-lm -pthread"
    if form is Form.C:
        libraries = "-lm -fopenmp" if threads > 1 else "-lm"
    return f"{compiler} -O2 {example} {file} {libraries} -o example"


def _described(port: Port, names: Mapping[Dim, str]) -> dict[str, object]:
    """Values the templates use for one tensor."""
    dtype = element_type(port.dtype.name)
    return {
        "name": in_comment(port.name),
        "shape": in_comment(f"[{', '.join(map(str, port.shape))}]"),
        "extents": [c_extent(extent, names) for extent in port.shape],
        "rank": len(port.shape),
        "dtype": _dtype_text(dtype),
        "c_type": c_type(port.dtype),
        "is_float": dtype in (DType.FLOAT32, DType.FLOAT64),
    }


def c_type(dtype: np.dtype[Any]) -> str:
    """The C type of what holds one or more elements."""
    kind = element_type(dtype.name)
    if isinstance(kind, Narrow):
        return "uint8_t"
    return _C_TYPES.get(kind, f"{kind.value}_t")


def _dtype_text(dtype: ElementType) -> str:
    if isinstance(dtype, Narrow) and dtype.in_a_byte > 1:
        return f"{dtype.value}, {dtype.in_a_byte} in a byte from its lowest bits on"
    return str(dtype.value)
