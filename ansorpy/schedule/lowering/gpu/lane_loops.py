"""Loops over the part of a fragment that one lane of a team holds in its registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import Expr, Var, as_expr
from ansorpy.ir.fragments import Digit, fragment_shape
from ansorpy.ir.loops import Buffer, For, ForKind, Stmt
from ansorpy.schedule.stage import Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["ALONG_X", "LaneLoops", "lane_index", "require_whole_fragments"]

ALONG_X = 4
"""Number of lanes that threadIdx.x counts; threadIdx.y counts groups of this many lanes."""


def lane_index(digit: Digit) -> ForKind:
    """The thread index that counts a digit's lanes; it may also count those of other digits."""
    return ForKind.THREAD_X if digit.lane < ALONG_X else ForKind.THREAD_Y


@dataclass(frozen=True)
class LaneLoops:
    """Indices in one fragment in terms of loops over lanes and registers.

    ``values`` has the index of each replaced loop; ``loops`` are (variable, extent, kind),
    outermost first.
    """

    values: Mapping[str, Expr]
    loops: Sequence[tuple[Var, int, ForKind]]

    @staticmethod
    def of(digits: Mapping[str, Sequence[Digit]], fresh: Callable[[str], Var]) -> LaneLoops:
        """The loops for the *digits* of each index, outermost first; *fresh* makes variables."""
        named = [(f"{name}.{n}", d) for name, parts in digits.items() for n, d in enumerate(parts)]
        lanes = [(name, d) for name, d in named if d.lane]
        own: dict[str, Expr] = {}
        loops: list[tuple[Var, int, ForKind]] = []
        for kind in (ForKind.THREAD_Y, ForKind.THREAD_X):
            counted = sorted((d.lane, name, d.extent) for name, d in lanes if lane_index(d) is kind)
            if not counted:
                continue
            var, inner = fresh(counted[0][1]), 1
            for _, name, extent in counted:
                own[name] = var if len(counted) == 1 else var // inner % extent
                inner *= extent
            loops.append((var, inner, kind))
        for name, digit in reversed([part for part in named if not part[1].lane]):
            own[name] = var = fresh(name)
            loops.append((var, digit.extent, ForKind.UNROLLED))
        values: dict[str, Expr] = {}
        for name, parts in digits.items():
            value: Expr = as_expr(0)
            for n in range(len(parts)):
                value = value + own[f"{name}.{n}"] * prod(d.extent for d in parts[n + 1 :])
            values[name] = value
        return LaneLoops(values, loops)

    def around(self, stmt: Stmt) -> Stmt:
        """*stmt*, which each lane runs for its own elements."""
        for var, extent, kind in reversed(self.loops):
            stmt = For(var, extent, kind, stmt)
        return stmt


def require_whole_fragments(state: State, stage: Stage, buffer: Buffer) -> None:
    """Refuse a box in a warp's registers that is not a whole number of fragments.

    Raises:
        ScheduleError: The box is not a whole number of fragments.
    """
    if buffer.fragment is None:
        return
    whole = fragment_shape(buffer.fragment)
    if any(n % m for n, m in zip(buffer.shape, whole, strict=True)):
        raise ScheduleError(
            f"a box of {list(buffer.shape)} elements does not consist of whole fragments of "
            f"{list(whole)}",
            stage=stage.name, program=state.text(),
            hint='split its readers by the fragment with tail="whole"',
        )  # fmt: skip
