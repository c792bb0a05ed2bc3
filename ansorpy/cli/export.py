"""``ansorpy export``: write the library of recorded programs, without tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import (
    Dim,
    Memory,
    ModelFile,
    Precision,
    PrecisionOption,
    Records,
    Shape,
    TargetName,
    Threads,
)

__all__ = ["export"]


def export(
    model: ModelFile,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The library.")] = None,
    db: Records = Path("ansorpy.db"),
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
    memory: Memory = None,
    precision: PrecisionOption = Precision.default,
) -> None:
    """Write the library of the best recorded programs; tasks without records are predicted."""
    from ansorpy.cli import searching
    from ansorpy.cli.files import library_path
    from ansorpy.cli.values import parse_bytes
    from ansorpy.runtime.export import check_exportable

    request = searching.make_request(db=db, target=target, threads=threads, precision=precision)
    library = library_path(model, output)
    check_exportable(library, request.target)
    project = searching.project_of(model, request, shape, dim).fit(parse_bytes(memory))
    searching.export(searching.search(project, request), request, library)
