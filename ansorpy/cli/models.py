"""Opening the argument of ``run``, ``bench`` and ``verify``: a library or an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.errors import UsageError

if TYPE_CHECKING:
    from ansorpy.api.several import Finished
    from ansorpy.runtime.model import Model

__all__ = ["from_records", "is_library", "onnx_beside", "open_model"]


def is_library(path: Path) -> bool:
    """True for a compiled library, by its first bytes; False for an unreadable file."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def onnx_beside(path: Path, model: Path | None) -> Path:
    """The ONNX file to compare with: *path* itself, or *model* for a library.

    Raises:
        UsageError: A library was given without ``--model``.
    """
    if not is_library(path):
        return path
    if model is None:
        raise UsageError(
            f"{path} is a library; the comparison needs the network it was made from",
            hint="name it with --model net.onnx",
        )
    return model


def open_model(
    path: Path,
    *,
    threads: int | None = None,
    db: Path | None = None,
    shape: Sequence[str] | None = None,
    dim: Sequence[str] | None = None,
) -> Model:
    """Load the library *path*, or compile the ONNX file from records, without tuning."""
    from ansorpy.api import load

    if is_library(path):
        return load(path)
    return from_records(path, threads=threads, db=db, shape=shape, dim=dim)[1]


def from_records(
    path: Path,
    *,
    threads: int | None = None,
    db: Path | None = None,
    shape: Sequence[str] | None = None,
    dim: Sequence[str] | None = None,
) -> tuple[Finished, Model]:
    """Programs and model of the ONNX file *path* from the records in *db*, without tuning."""
    from ansorpy.api.assemble import model_of
    from ansorpy.cli.searching import make_request, project_of, search

    request = make_request(db=db, threads=threads)
    project = project_of(path, request, shape, dim)
    finished = search(project, request, quiet=True)
    return finished, model_of(finished.project, finished.chosen, request.threads)
