"""Files named on the command line: existing databases, libraries and arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.report.inputs import random_value
from ansorpy.runtime.ports import Port, described

__all__ = [
    "demand_database", "feeds", "library_path", "open_database", "save_arrays",
]  # fmt: skip

Array = NDArray[np.generic]


def open_database(path: Path) -> Database:
    """Open the database *path*, which must exist, to report what it says, whoever wrote it."""
    demand_database(path)
    return Database(path, believe=Believe.ALL)


def demand_database(path: Path) -> None:
    """Raise :class:`ForeignFile` if the database does not exist: reading never creates one."""
    if not path.exists():
        raise ForeignFile(
            f"there is no database {path}", hint="name another file, or tune something first"
        )


def library_path(model: Path, output: Path | None, suffix: str = ".so") -> Path:
    """The path for the library of *model*: *output*, or the model's name with *suffix*.

    Raises:
        UsageError: That path is the model's own file.
    """
    library, is_model = output or Path(f"{model.stem}{suffix}"), False
    with suppress(OSError):  # there is no such file, or cannot be
        is_model = library.samefile(model)
    if is_model:
        raise UsageError(f"the library would replace the model {model}", hint="name another file")
    return library


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write *arrays*, whatever their names, to the ``.npz`` file *path*."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def feeds(specs: Sequence[Port], given: Sequence[str]) -> dict[str, Array]:
    """The input arrays for *specs*.

    *given*: ``name=file.npy``, ``name=file.npz`` (its entry of that name) or
    ``name=random[:seed]``; inputs not given are random with seed 0.

    Raises:
        UsageError: A name is unknown, or a shape or type does not match the input.
        ForeignFile: A file does not contain an array.
    """
    by_name = {spec.name: spec for spec in specs}
    found = {name: random_value(s.shape, s.dtype, 0, name) for name, s in by_name.items()}
    for item in given:
        name, separator, source = item.partition("=")
        if not separator or name not in by_name:
            raise UsageError(
                f"{item!r} names no input", hint=f"write NAME=FILE; inputs: {', '.join(by_name)}"
            )
        found[name] = _value(by_name[name], source)
    return found


def _value(spec: Port, source: str) -> Array:
    kind, _, seed = source.partition(":")
    if kind == "random" and (not seed or seed.isdecimal()):
        return random_value(spec.shape, spec.dtype, int(seed or 0), spec.name)
    array = _read(Path(source), spec.name)
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise UsageError(
            f"input {spec.name!r} takes {described(spec.shape, spec.dtype)}, "
            f"but {source} contains {described(array.shape, array.dtype)}"
        )
    return array


def _read(path: Path, name: str) -> Array:
    try:
        content = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ForeignFile(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile):  # numpy treats other files as pickles
        raise ForeignFile(
            f"{path} is not a numpy file", hint="write it with numpy.save or numpy.savez"
        ) from None
    if isinstance(content, np.ndarray):
        return content
    with content:
        if name not in content:
            raise UsageError(f"{path} has no array {name!r}", hint=f"it has {content.files}")
        return np.asarray(content[name])
