"""Files named on the command line: existing databases, libraries and arrays."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from ansorpy.api.evaluate.libraries import is_library
from ansorpy.arrays import Array
from ansorpy.config import SEED
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.evaluation.inputs import port_shapes, random_value
from ansorpy.ir.extents import dim_extent, dims_of
from ansorpy.options import values_by_name
from ansorpy.runtime.library.forms import Form, form_of
from ansorpy.runtime.ports import Port, described
from ansorpy.size_ranges import AnySize, SizeRange, size_of

__all__ = ["emitted_path", "feeds", "save_arrays"]

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""The readers of headers by version; later versions are for records with names of any script."""
_NOT_NUMPY = (
    EOFError, MemoryError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What numpy, its parser of headers and zipfile raise for other files and damaged ones."""


def emitted_path(
    model: Path, output: Path | None, emit: Form | None, default: Form = Form.SO
) -> Path:
    """The path for the program of *model*: *output*, or the model's name with the suffix of *emit*
    or of the *default* form.

    Raises:
        UsageError: That path is the model's own file, or the name of no form or of another one
            than *emit*.
    """
    suffix = (emit or default).suffix
    library, is_model = output or Path(f"{model.stem}{suffix}"), False
    with suppress(OSError):  # there is no such file, or cannot be
        is_model = library.samefile(model) and not is_library(model)
    if is_model:
        raise UsageError(f"the library would replace the model {model}", hint="name another file")
    if form_of(library) is not (emit or form_of(library)):
        raise UsageError(
            f"{library} is not a name for --emit {emit}", hint=f"let it end in {suffix}"
        )
    return library


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write *arrays*, whatever their names, to the ``.npz`` file *path*."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def feeds(
    specs: Sequence[Port], given: Sequence[str], dims: Mapping[str, AnySize] | None = None
) -> dict[str, Array]:
    """The input arrays for *specs*.

    *given*: ``name=file.npy``, ``name=file.npz`` (its entry of that name) or
    ``name=random[:seed]``; inputs not given are random.  Random ones have the sizes that *dims*
    states, or the shapes of the files, or else usual sizes of the ranges in *dims*, and elements
    within their bounds; their seed is ``ANSORPY_SEED`` (0) where none is given.

    Raises:
        UsageError: A name is unknown, or given twice, a shape or type does not match the input,
            or nothing tells the size of a dimension.
        ForeignFile: A file does not contain an array.
    """
    by_name = {spec.name: spec for spec in specs}
    seeds = dict.fromkeys(by_name, SEED.get())
    found: dict[str, Array] = {}

    def named(item: str) -> tuple[str, str]:
        name, separator, source = item.partition("=")
        if not separator or name not in by_name:
            raise UsageError(
                f"{item!r} names no input", hint=f"write NAME=FILE; inputs: {', '.join(by_name)}"
            )
        return name, source

    for name, source in values_by_name("--input", given, named).items():
        kind, _, seed = source.partition(":")
        if kind == "random" and (not seed or seed.isdecimal()):
            seeds[name] = int(seed or SEED.get())
        else:
            found[name] = _value(by_name[name], source)
    stated = {name: size_of(size, name) for name, size in (dims or {}).items()}
    sizes = {name: size.usual for name, size in stated.items() if isinstance(size, SizeRange)}
    sizes |= _sizes(by_name, found)
    sizes |= {name: size for name, size in stated.items() if isinstance(size, int)}
    left = [spec for name, spec in by_name.items() if name not in found]
    for name, shape in port_shapes(left, sizes).items():
        spec = by_name[name]
        found[name] = random_value(shape, spec.dtype, seeds[name], name, spec.bound)
    return found


def _sizes(specs: Mapping[str, Port], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The sizes of dimensions that are the extent of an axis of one of *arrays*."""
    return {
        dim.name: size
        for name, array in arrays.items()
        for extent, size in zip(specs[name].shape, array.shape, strict=True)
        for dim in dims_of([extent])
        if extent == dim_extent(dim)
    }


def _value(spec: Port, source: str) -> Array:
    path = Path(source)
    try:
        with _opened(path, spec.name) as file:
            return _array(file, spec, source)
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except _NOT_NUMPY:
        raise ForeignFile(
            f"{path} is not a numpy file", hint="write it with numpy.save or numpy.savez"
        ) from None


@contextmanager
def _opened(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The file of an array: *path* itself, or its entry *name* if it is an ``.npz`` archive."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        entries = archive.namelist()
        if f"{name}.npy" not in entries:
            found = [entry.removesuffix(".npy") for entry in entries]
            raise UsageError(f"{path} has no array {name!r}", hint=f"it has {found}")
        with archive.open(f"{name}.npy") as file:
            yield file


def _array(file: IO[bytes], spec: Port, source: str) -> Array:
    """The array in *file*, of which no more than the header is read if it does not fit *spec*."""
    start = file.tell()
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version}")
    shape, _, dtype = _HEADERS[version](file)
    fits = len(shape) == len(spec.shape) and all(
        size == extent or not isinstance(extent, int)
        for size, extent in zip(shape, spec.shape, strict=True)
    )
    is_unnamed = dtype.kind == "V" and dtype.itemsize == spec.dtype.itemsize
    if spec.dtype.kind == "V" and is_unnamed and dtype.names is None:
        dtype = spec.dtype  # numpy writes the bytes of types like bfloat16, but not their names
    if not fits or dtype != spec.dtype:
        converted = f'save it as numpy.asarray(array, "{spec.dtype}")'
        raise UsageError(
            f"input {spec.name!r} takes {described(spec.shape, spec.dtype)}, "
            f"but {source} contains {described(shape, dtype)}",
            hint=converted if fits else "save an array of that shape",
        )
    file.seek(start)
    return np.asarray(npy.read_array(file, allow_pickle=False)).view(dtype)
