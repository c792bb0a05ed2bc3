"""The programs that a cost model scores and learns from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Nest

__all__ = ["Beginning", "Programs"]


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of one sketch: the rows of ``table[programs, columns of space]``.

    A model reads what it needs of them: the loop nests, or the decisions themselves.
    """

    space: Space
    table: Table

    @classmethod
    def of(cls, state: State) -> Programs:
        """The one program of *state*, which has no open decisions."""
        return cls(Space(state), np.zeros((1, 0), dtype=np.int64))

    @cached_property
    def nest(self) -> Nest:
        """The loop nests of all programs; made on first use."""
        return self.space.nest(self.table)

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True, eq=False)
class Beginning:
    """The first decisions of a program: the steps of *space*'s state, then its first columns.

    ``row[columns]`` has the numbers of those that are decided.
    """

    space: Space
    row: Table
