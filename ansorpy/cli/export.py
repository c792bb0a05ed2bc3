"""``ansorpy export``: write the library of recorded programs, without tuning."""

from __future__ import annotations

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

__all__ = ["export"]


def export(
    model: ModelFile,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The library.")] = None,
    db: ExistingRecords = None,
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
    memory: Memory = None,
    precision: PrecisionOption = Precision.default,
) -> None:
    """Write the library of the best recorded programs; tasks without records are predicted."""
    from ansorpy.cli import searching
    from ansorpy.cli.files import existing_records, library_path
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.values import parse_bytes
    from ansorpy.runtime.export import check_exportable

    lookup = Lookup(model, existing_records(db), target, threads, precision, dim, shape)
    request, library = lookup.request, library_path(model, output)
    check_exportable(library, request.target)
    project = lookup.project.fit(parse_bytes(memory))
    lookup.warn_of_predictions()
    searching.export(searching.search(project, request), request, library)
