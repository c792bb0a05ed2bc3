"""Runs on one GPU that a file keeps, so that a later one goes on where they ended."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import ConfigDict

from ansorpy.errors import ForeignFile
from benchmarks.common.compared import Stored

__all__ = ["GpuRun"]


class GpuRun(Stored):
    """What was done on one GPU.

    Args:
        code: The version of the code that ran (:func:`benchmarks.common.compared.code_version`).
        waiting: What was asked for and has no outcome, as the time was up.
    """

    model_config = ConfigDict(frozen=False)

    gpu: str
    code: str = ""
    waiting: list[str] = []

    @property
    def made_with(self) -> str:
        """What two runs must have in common to be one."""
        return f"{self.gpu} by ansorpy {self.code}"

    def resumed(self, file: Path) -> Self:
        """The run in *file*, of which this is the beginning; this run if there is no file.

        Raises:
            ForeignFile: The file has no such run, or one of another GPU or of other code.
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
