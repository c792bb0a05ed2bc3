"""Interface between the run worker and the device that runs candidates: CPU cores or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ansorpy.arrays import Array
from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.build.built import Built

__all__ = ["Candidate", "OpenTask", "TaskOpener"]


class Candidate(Protocol):
    """A candidate loaded for a task."""

    @property
    def fresh_bytes(self) -> int:
        """Bytes of memory that no call has touched before the first timed one."""

    def check(self) -> float:
        """Run it once with poisoned outputs and guarded buffers; returns the seconds it took.

        Raises:
            CodegenError: It wrote outside its buffers, or returned an error.
        """

    def prepare(self, reuse_distance_bytes: int) -> None:
        """Prepare for timing, after the check.

        *reuse_distance_bytes* of other data are read between two uses of a constant.
        """

    @property
    def unit(self) -> int:
        """Number of calls of which a burst must be a multiple; known after :meth:`prepare`."""

    def burst(self, number: int) -> float:
        """Return the seconds that *number* consecutive calls took."""


class OpenTask(Protocol):
    """The arrays of one task, shared by all its candidates."""

    @property
    def dag(self) -> ComputeDAG: ...

    def values(self) -> Mapping[str, Array]:
        """All placeholders by name."""

    def results(self) -> Sequence[Array]:
        """Outputs of the last checked candidate."""

    def accepted_error(
        self, number: int, want: Array, allowed: float, *, by_block: bool, least: float
    ) -> float | None:
        """The error of output *number* if it was compared where it is and accepted.

        None if :meth:`results` must be compared.  The arguments and the rule are those of
        :func:`ansorpy.measure.check.compare.compare`.
        """

    def is_disturbed(self) -> bool:
        """Whether the device is slower now than a moment ago."""

    def recover(self) -> bool:
        """Repair what a failed candidate may have damaged; False if only a new process helps."""

    def load(self, built: Built) -> AbstractContextManager[Candidate]:
        """Load a candidate; leaving the context unloads it.

        Raises:
            CodegenError: Its parameters do not fit the task, or its code cannot be loaded.
        """


TaskOpener = Callable[[ComputeDAG, int, int], OpenTask]
"""Opens a task: called with its definition, a seed for the inputs, and the number of threads."""
