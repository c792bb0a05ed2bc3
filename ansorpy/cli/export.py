"""``ansorpy export``: write the library of recorded programs, without tuning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import (
    Dim,
    ExistingRecords,
    Memory,
    ModelFile,
    Precision,
    PrecisionOption,
    Shape,
    TargetName,
    Threads,
)

__all__ = ["Emitted", "export"]


class Emitted(StrEnum):
    """What the programs are written as."""

    library = "library"
    c = "c"


_SUFFIXES = {Emitted.library: ".so", Emitted.c: ".c"}


def export(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The library, or C file (NAME.c).")
    ] = None,
    emit: Annotated[
        Emitted, typer.Option("--emit", help="What to write; a name that ends in .c is C.")
    ] = Emitted.library,
    db: ExistingRecords = None,
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
    memory: Memory = None,
    precision: PrecisionOption = Precision.default,
) -> None:
    """Write the library, or C, of the best recorded programs; tasks without any are predicted."""
    from ansorpy.api.in_c import emitted_target
    from ansorpy.cli import searching
    from ansorpy.cli.files import existing_records, library_path
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.values import parse_bytes
    from ansorpy.errors import UsageError
    from ansorpy.runtime.export import check_exportable

    lookup = Lookup(model, existing_records(db), target, threads, precision, dim, shape)
    request, library = lookup.request, library_path(model, output, _SUFFIXES[emit])
    if emit is Emitted.c and library.suffix != _SUFFIXES[emit]:
        raise UsageError(f"{library} is no name for C", hint="let it end in .c")
    check_exportable(library, emitted_target(library, request.target, request.threads))
    project = lookup.project.fit(parse_bytes(memory))
    lookup.warn_of_predictions()
    searching.export(searching.search(project, request), request, library)
