"""``ansorpy export``: the library of what is recorded, without tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import (
    Dim,
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
    precision: PrecisionOption = Precision.default,
) -> None:
    """Write the library of the best recorded programs; tasks without records are predicted."""
    from ansorpy.api.assemble import model_of
    from ansorpy.cli.searching import make_request, project_of, search

    request = make_request(db=db, target=target, threads=threads, precision=precision)
    project = project_of(model, request, shape, dim)
    chosen = search(project, request)
    library = output or Path(f"{model.stem}.so")
    print(f"wrote {model_of(project, chosen, request.threads).export(library)}")
