"""Install a library for CMake and pkg-config, with a header for C++."""

from __future__ import annotations

import shutil
from pathlib import Path

from ansorpy.codegen.clike.comments import in_comment
from ansorpy.runtime.header import beside, c_type, write_header
from ansorpy.runtime.library.elf import soname_of
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.packages.signature import (
    NamedPort,
    demand_header,
    demand_namespace,
    demand_packable,
    named_ports,
)
from ansorpy.runtime.status import Status
from ansorpy.runtime.templates import rendered
from ansorpy.writable import demand_folders, replacing

__all__ = ["write_cmake_package"]


def write_cmake_package(library: Path, prefix: Path, version: str) -> list[Path]:
    """Install the shared *library* in the folder *prefix*, which can be moved; returns the files.

    They are called as the library was when it was linked: programs look for it by that name.

    Raises:
        ForeignFile: The file is not a library that ansorpy made.
        UsageError: Its calls or its name cannot be offered in C++, or *prefix* cannot be written.
        OSError: A file cannot be written.
    """
    metadata, _, _ = read_library(library)
    demand_packable(metadata, library)
    demand_namespace(metadata.name)
    soname = soname_of(library)
    file = Path(Path(soname or library).name)
    name, installed = metadata.name, prefix / "lib" / file
    config, pkgconfig, include = (
        prefix / "lib" / "cmake" / name, prefix / "lib" / "pkgconfig", prefix / "include",
    )  # fmt: skip
    header, _ = beside(include / file)
    demand_header(header.stem)
    demand_folders(config, pkgconfig, include)
    with replacing(installed) as made:
        shutil.copy(library, made)
    inputs, outputs = named_ports(metadata, beside=["_shape"])
    values = {
        "name": name, "upper": name.upper(), "library": file.name, "version": version,
        "inputs": list(map(_described, inputs)), "outputs": list(map(_described, outputs)),
        "header": header.name, "statuses": list(Status), "has_soname": soname is not None,
    }  # fmt: skip
    written = [installed]
    write_header(metadata, include / file)
    written.append(header)
    for template, path in (
        ("library.hpp.j2", header.with_suffix(".hpp")),
        ("config.cmake.j2", config / f"{name}Config.cmake"),
        ("version.cmake.j2", config / f"{name}ConfigVersion.cmake"),
        ("package.pc.j2", pkgconfig / f"{name}.pc"),
    ):
        with replacing(path) as made:
            made.write_text(rendered(template, values), encoding="utf-8")
        written.append(path)
    return written


def _described(named: NamedPort) -> dict[str, object]:
    return {
        "name": named.name,
        "type": c_type(named.port.dtype),
        "rank": len(named.port.shape),
        "is_fixed": named.is_fixed,
        "shape": ", ".join(map(str, named.port.shape)) if named.is_fixed else "",
        "text": in_comment(named.shape_text),
    }
