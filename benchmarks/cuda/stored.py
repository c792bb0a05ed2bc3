"""Runs on one GPU that a file keeps, so that a later one goes on where they ended."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.errors import ForeignFile

__all__ = ["GpuRun", "stored_run"]


class GpuRun(BaseModel):
    """What was done on one GPU."""

    model_config = ConfigDict(extra="forbid")

    gpu: str

    @property
    def made_with(self) -> str:
        """What two runs must have in common to be one."""
        return self.gpu


Run = TypeVar("Run", bound=GpuRun)


def stored_run(file: Path, empty: Run, what: str) -> Run:
    """The run in *file*, of which *empty* is the beginning; *empty* itself if there is no file.

    Raises:
        ForeignFile: The file has no *what*, as messages call them, or those of another run.
    """
    if not file.exists():
        return empty
    try:
        run = type(empty).model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise ForeignFile(f"{file} has no {what} of a GPU: {error}") from None
    if run.made_with != empty.made_with:
        raise ForeignFile(
            f"the {what} are of {run.made_with}, not of {empty.made_with}",
            hint="name another file with --json",
        )
    return run
