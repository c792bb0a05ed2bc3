"""Programs as trees: a row for each loop and statement, with the number of its parent's row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.features import FEATURE_NAMES, extract
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.loops import ForKind

__all__ = ["LOOP", "STATEMENT", "WIDTH", "Node", "tree_of", "tree_rows", "unscheduled_s"]

_PARENT, _IS_LOOP, _UNSCHEDULED = 0, 1, 2

LOOP: Final = slice(3, 11)
"""Columns of a loop: logarithm of the extent, then whether it sums, is parallel, vector, unrolled,
bound to a GPU index, then logarithms of the bytes it touches and of how often it is entered."""

STATEMENT: Final = slice(LOOP.stop, LOOP.stop + len(FEATURE_NAMES))
"""Columns of a statement: its features."""

WIDTH: Final = STATEMENT.stop


@dataclass
class Node:
    """A loop, or the program: the rows of the loops and statements directly inside, in order."""

    row: int
    loops: list[Node] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)


def tree_rows(views: Sequence[LeafView], rows: int, unscheduled: float) -> Floats:
    """The trees of *rows* programs, ``[rows, nodes, WIDTH]``; the first node is the program.

    It has the seconds of the *unscheduled* program, which are a label, not an input.  Loops follow
    in program order; those that never have a second iteration are left out.
    """
    head = np.zeros((rows, WIDTH))
    head[:, _UNSCHEDULED] = unscheduled
    found, inside = [head], list[tuple[tuple[str, str], int]]()
    for view in views:
        keys = [(view.leaf.loops[n].stage, view.leaf.loops[n].name) for n in view.real]
        same = _common(keys, [key for key, _ in inside])
        del inside[same:]
        for key, loop in list(zip(keys, view.real, strict=True))[same:]:
            found.append(_loop(view, loop, rows, inside[-1][1] if inside else 0))
            inside.append((key, len(found) - 1))
        leaf = np.zeros((rows, WIDTH))
        leaf[:, _PARENT] = inside[-1][1] if inside else 0
        leaf[:, STATEMENT] = view.spread(extract(view))
        found.append(leaf)
    return np.stack(found, axis=1)


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Number of first elements that are the same."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


def _loop(view: LeafView, loop: int, rows: int, parent: int) -> Floats:
    real = view.real[loop].astype(np.float64)
    nothing = np.zeros(view.rows)
    marks = [marked.get(loop, nothing) for marked in (view.parallel, view.vector, view.unroll)]
    bound = real * (view.leaf.loops[loop].index is not ForKind.SERIAL)
    columns = [
        np.log2(1 + view.extent[loop]), real * view.is_reduce(loop), *marks, bound,
        np.log2(1 + view.touched[loop]), np.log2(1 + view.outer_prod[loop]),
    ]  # fmt: skip
    found = np.zeros((rows, WIDTH))
    found[:, _PARENT], found[:, _IS_LOOP] = parent, 1
    found[:, LOOP] = view.spread(np.stack(columns, axis=1))
    return found


def tree_of(nodes: Floats) -> Node:
    """The tree of one program's rows, without padding."""
    made = {0: Node(0)}
    for row, (parent, is_loop, *_) in enumerate(nodes[1:], start=1):
        if is_loop:
            made[row] = Node(row)
            made[int(parent)].loops.append(made[row])
        else:
            made[int(parent)].statements.append(row)
    return made[0]


def unscheduled_s(nodes: Floats) -> float:
    """Seconds of the unscheduled program, from a program's rows."""
    return float(nodes[0, _UNSCHEDULED])
