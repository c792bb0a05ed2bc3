"""Loops over what one lane of a warp holds of the fragments in its registers."""

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

__all__ = ["LaneLoops", "lane_index", "require_whole_fragments"]

_INDICES = {1: ForKind.THREAD_X, 4: ForKind.THREAD_Y}
"""The index that counts lanes in steps of so many: threads are numbered along x first."""


def lane_index(digit: Digit) -> ForKind:
    """The thread index that a loop over lanes is bound to."""
    return _INDICES[digit.lane]


@dataclass(frozen=True)
class LaneLoops:
    """For each of some loops its index in one fragment, in terms of loops over its digits."""

    values: Mapping[str, Expr]
    loops: Sequence[tuple[Var, Digit]]

    @staticmethod
    def of(digits: Mapping[str, Sequence[Digit]], fresh: Callable[[str], Var]) -> LaneLoops:
        """Digits of each loop, outermost first; *fresh* makes variables."""
        values: dict[str, Expr] = {}
        loops: list[tuple[Var, Digit]] = []
        for name, parts in digits.items():
            value: Expr = as_expr(0)
            for n, digit in enumerate(parts):
                var = fresh(f"{name}.{n}")
                value = value + var * prod(d.extent for d in parts[n + 1 :])
                loops.append((var, digit))
            values[name] = value
        return LaneLoops(values, loops)

    def around(self, stmt: Stmt) -> Stmt:
        """*stmt*, which each lane runs for its own elements."""
        for var, digit in sorted(self.loops, key=lambda loop: loop[1].lane):
            kind = lane_index(digit) if digit.lane else ForKind.UNROLLED
            stmt = For(var, digit.extent, kind, stmt)
        return stmt


def require_whole_fragments(state: State, stage: Stage, buffer: Buffer) -> None:
    """Refuse a box in a warp's registers that no number of fragments makes up.

    Raises:
        ScheduleError: It is such a box.
    """
    if buffer.fragment is None:
        return
    whole = fragment_shape(buffer.fragment)
    if any(n % m for n, m in zip(buffer.shape, whole, strict=True)):
        raise ScheduleError(
            f"a box of {list(buffer.shape)} elements is made up of no fragments of {list(whole)}",
            stage=stage.name, program=state.text(),
            hint='split its readers by the fragment with tail="whole"',
        )  # fmt: skip
