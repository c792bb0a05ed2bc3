"""``ansorpy package``: a wheel, or a CMake and pkg-config package, of a library."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.errors import UsageError

__all__ = ["package"]


def package(
    library: Annotated[Path, typer.Argument(metavar="LIBRARY", help="A shared library: net.so.")],
    wheel: Annotated[bool, typer.Option("--wheel", help="Write a Python wheel.")] = False,
    cmake: Annotated[
        bool,
        typer.Option("--cmake", help="Install it for CMake and pkg-config, with a C++ header."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="The folder of the wheel (default: this one), or to install in.",
        ),
    ] = None,
    version: Annotated[
        str, typer.Option("--version", help="The version of the package.")
    ] = "1.0.0",
) -> None:
    """Package a compiled library for Python (--wheel) or C++ (--cmake)."""
    from ansorpy.runtime.library.forms import stem_of
    from ansorpy.runtime.packages.cmake import write_cmake_package
    from ansorpy.runtime.packages.signature import demand_version
    from ansorpy.runtime.packages.wheel import write_wheel

    if wheel is cmake:
        problem = "--wheel and --cmake write two packages" if wheel else "say what to write"
        raise UsageError(problem, hint="give one of --wheel and --cmake")
    demand_version(version)
    if wheel:
        if output is not None and output.suffix == ".whl":
            raise UsageError(
                "the name of a wheel follows from the library", hint="name its folder with -o"
            )
        made = write_wheel(library, output or Path(), version)
        print(f"wrote {made}\nnext: {shlex.join(['pip', 'install', str(made)])}")
        return
    prefix = output or Path(f"{stem_of(library)}-{version}")
    for file in write_cmake_package(library, prefix, version):
        print(f"wrote {file}")
    where = f"-DCMAKE_PREFIX_PATH={prefix.absolute()}"
    print(f"next: {shlex.join(['cmake', '-S', '.', '-B', 'build', where])}")
