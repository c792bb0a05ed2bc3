"""What the run worker asks of the place where candidates run: this process's cores, or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt

from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.built import Built

__all__ = ["Array", "Bench", "Candidate", "OpenTask"]

Array = npt.NDArray[Any]


class Candidate(Protocol):
    """A candidate loaded for a task."""

    @property
    def fresh_bytes(self) -> int:
        """Bytes that nobody touched before its first timed call."""

    def check(self) -> float:
        """Run it once, its outputs poisoned and its buffers guarded; returns the seconds it took.

        Raises:
            CodegenError: It wrote outside its buffers, or said that it failed.
        """

    def prepare(self, between_bytes: int) -> None:
        """Get ready to be timed, once it was checked: its constants after so many other bytes."""

    @property
    def unit(self) -> int:
        """A burst is so many calls, or a multiple; known once it is prepared."""

    def burst(self, number: int) -> float:
        """Seconds of *number* calls in a row."""


class OpenTask(Protocol):
    """The arrays of one task, for all its candidates."""

    @property
    def dag(self) -> ComputeDAG: ...

    def values(self) -> Mapping[str, Array]:
        """All placeholders by name."""

    def results(self) -> Sequence[Array]:
        """What the candidate checked last has put out."""

    def is_disturbed(self) -> bool:
        """Whether the place gives less now than it gave a moment ago."""

    def load(self, built: Built) -> AbstractContextManager[Candidate]:
        """The candidate until the context ends.

        Raises:
            CodegenError: Its parameters do not fit the task, or its code cannot be loaded.
        """


Bench = Callable[[ComputeDAG, int, int], OpenTask]
"""Opens a definition, with inputs of a seed, for candidates that run with so many threads."""
