"""Programs of a plan, with the schedules that they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansorpy.ir.symbols import Dim

__all__ = ["ScheduledProgram"]


@dataclass(frozen=True)
class ScheduledProgram:
    """A program whose schedule is known, and what calls it.

    Args:
        name: That of its first call.
        schedule: The schedule of each part of the sizes (:mod:`ansorpy.runtime.schedules`).
        calls: Number of its calls.
        dims: Names of the dimensions that a call depends on.  The definition of *schedule* has
            those of the first call only.
    """

    name: str
    schedule: str
    calls: int = 0
    dims: tuple[str, ...] = ()

    def called(self, dims: Sequence[Dim]) -> ScheduledProgram:
        """The program with one more call, which depends on *dims*."""
        names = dict.fromkeys((*self.dims, *(dim.name for dim in dims)))
        return replace(self, calls=self.calls + 1, dims=tuple(names))
