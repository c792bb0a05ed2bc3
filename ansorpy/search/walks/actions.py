"""The moves that a policy chooses from in the space of a placed sketch, for many rows at once.

Here a row is its numbers, one for each decision (:meth:`~ansorpy.schedule.space.Space.encode`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.schedule.decisions import Factors, moves
from ansorpy.schedule.space import Space, Table

__all__ = ["Actions", "directions", "factor_moves", "observed", "one_knob", "per_knob"]

_STAY = 0
"""The number of the move that changes nothing."""

Moves = list[tuple[int, Table]]
"""Moves of a decision: its number and, for each row of its domain, the row that follows."""


@dataclass(frozen=True, eq=False)
class Actions:
    """An action is one choice by each head; a choice is a move of one decision, or to stay.

    Args:
        decision: ``decision[move]``: the decision that the move changes.
        start: ``start[move]``: where the move's table begins in *table*.
        table: For each move and row of its decision's domain, the number of the row that follows.
        heads: ``heads[head, choice]``: a move; -1 for a choice that the head does not have.
    """

    decision: Table
    start: Table
    table: Table
    heads: Table

    def legal(self, numbers: Table) -> Masks:
        """``mask[row, head, choice]``: the choices that change the row, and those to stay."""
        after = self.table[self.start + numbers[:, self.decision]]
        moving = after != numbers[:, self.decision]
        moving[:, _STAY] = True
        legal: Masks = moving[:, self.heads] & (self.heads >= 0)
        return legal

    def apply(self, numbers: Table, choices: Table) -> Table:
        """*numbers* after ``choices[row, head]``; constraints are not checked."""
        for head, chosen in enumerate(choices.T):
            numbers = self.step(numbers, head, chosen)
        return numbers

    def step(self, numbers: Table, head: int, chosen: Table) -> Table:
        """*numbers* after the choice of one head in each row."""
        moved, rows, move = numbers.copy(), np.arange(len(numbers)), self.heads[head, chosen]
        decision = self.decision[move]
        moved[rows, decision] = self.table[self.start[move] + numbers[rows, decision]]
        return moved

    def staying(self, choices: Table, share: float) -> Masks:
        """Mask of the rows of *choices* in which at least that *share* of the heads stay."""
        moves = self.heads[np.arange(len(self.heads)), choices]
        mask: Masks = (moves == _STAY).sum(axis=1) >= share * len(self.heads)
        return mask


def observed(space: Space, numbers: Table) -> Floats:
    """What a policy sees of rows: each column's logarithm as a share of its domain's largest."""
    logs = np.log2(np.maximum(space.decode(numbers), 0) + 1.0)
    tops = [np.log2(np.maximum(d.domain.rows, 0).max(axis=0) + 1.0) for d in space.decisions]
    shares: Floats = logs / np.maximum(np.concatenate([*tops, np.zeros(0)]), 1.0)
    return shares


def per_knob(space: Space) -> Actions:
    """One head for each decision: to the domain's previous row, to its next, or stay."""
    return _actions([_along(space, k) for k in _open(space)], stay=True)


def one_knob(space: Space) -> Actions:
    """A single head: one decision goes to its domain's previous row or next, or none does."""
    return _actions([[m for k in _open(space) for m in _along(space, k)]], stay=True)


def directions(space: Space) -> Actions:
    """One head for each decision: every step of it, but not to stay."""
    return _actions([_steps(space, k) for k in _open(space)], stay=False)


def factor_moves(space: Space) -> Actions:
    """One head that moves a factor of any split, and one for each other decision; all may stay."""
    splits = [k for k in _open(space) if isinstance(space.decisions[k].domain, Factors)]
    others = [_steps(space, k) for k in _open(space) if k not in splits]
    return _actions([[m for k in splits for m in _steps(space, k)], *others], stay=True)


def _open(space: Space) -> list[int]:
    """The decisions that have a choice."""
    return [k for k, d in enumerate(space.decisions) if len(d.domain.rows) > 1]


def _along(space: Space, k: int) -> Moves:
    last = len(space.decisions[k].domain.rows) - 1
    numbers = np.arange(last + 1)
    return [(k, np.maximum(numbers - 1, 0)), (k, np.minimum(numbers + 1, last))]


def _steps(space: Space, k: int) -> Moves:
    return [(k, table) for table in moves(space.decisions[k].domain)]


def _actions(heads: Sequence[Moves], *, stay: bool) -> Actions:
    heads = [head for head in heads if head]
    found = [move for head in heads for move in head]
    longest = max((len(table) for _, table in found), default=1)
    every: Moves = [(0, np.arange(longest)), *found]
    lengths = [len(table) for _, table in every]
    width = max((len(head) for head in heads), default=0) + stay
    chosen = np.full((len(heads), width), -1, dtype=np.int64)
    first = 1
    for row, head in zip(chosen, heads, strict=True):
        row[: len(head) + stay] = [*[_STAY] * stay, *range(first, first + len(head))]
        first += len(head)
    return Actions(
        np.array([k for k, _ in every], dtype=np.int64),
        np.cumsum([0, *lengths[:-1]]).astype(np.int64),
        np.concatenate([table for _, table in every]),
        chosen,
    )
