"""Axes that bodies take apart by numbers, and those whose remainders choose between values."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, compute, placeholder
from ansorpy.rules.matching.branches import chosen_by_remainder, periods


def taken_apart(first: int, second: int) -> ComputeOp:
    """Reads at two quotients of ``y``; which of two rows is chosen depends on a remainder."""
    x = placeholder((24, 24), name="X")

    def body(y: Expr, z: Expr) -> Expr:
        chosen = (y // first % 2).equal(0)
        return ap.select(chosen, x[y // second, z], x[y // first, z])

    return compute((24, 24), body, name="Y")


def test_an_axis_has_the_number_the_others_divide() -> None:
    assert periods(taken_apart(2, 2)) == {"y": 2}
    assert periods(taken_apart(2, 8)) == {"y": 8}
    assert periods(taken_apart(2, 3)) == {}


def test_remainders_of_quotients_choose_too() -> None:
    assert chosen_by_remainder(taken_apart(2, 8)) == {"y"}
