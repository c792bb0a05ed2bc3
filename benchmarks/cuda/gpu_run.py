"""Runs on one GPU that a file keeps, so that a later one goes on where they ended."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import ConfigDict

from ansorpy.errors import ForeignFile
from benchmarks.common.compared import Stored

__all__ = ["GpuRun"]


class GpuRun(Stored):
    """What was done on one GPU."""

    model_config = ConfigDict(frozen=False)

    gpu: str

    @property
    def made_with(self) -> str:
        """What two runs must have in common to be one."""
        return self.gpu

    def resumed(self, file: Path) -> Self:
        """The run in *file*, of which this is the beginning; this run if there is no file.

        Raises:
            ForeignFile: The file has no such run, or one of another GPU.
        """
        if not file.exists():
            return self
        run = self.read(file, "cuda")
        if run.made_with != self.made_with:
            raise ForeignFile(
                f"the results in {file} are of {run.made_with}, not of {self.made_with}",
                hint="name another file with --json",
            )
        return run
