"""Attributes of a stage: hints that its formula does not express."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any

from ansorpy.ir.dtypes import python_number
from ansorpy.quantities import is_real

__all__ = ["AXIS_LISTS", "Attrs"]


@dataclass(frozen=True)
class Attrs:
    """Hints that a definition gives to the rules; axes are given by name.

    Args:
        flops: Number of operations of the stage; None counts those of its body.
        unroll_axes: Axes that index constant matrices (Winograd's); they are unrolled so that the
            constants fold.  TVM: ``auto_scheduler_simplify_const_tensor_indices``.
        no_split_at_inner: Axes that stay whole inside the innermost tile.
        always_unroll_inner: Axes whose loops in the innermost tile are always unrolled.
        error: Error of the stage beyond rounding, relative to the largest result.  Algorithms
            state it, and checks of candidates add it to their tolerance.
        rounds_to_tf32: Tensor cores may round its factors to TF32, which adds ``error``.
        each_call: Every call computes the stage, even if it depends on constants only: these take
            less memory than it does.

    Raises:
        ValueError: A name list is a single string, or a number is negative or not finite.
    """

    flops: float | None = None
    unroll_axes: tuple[str, ...] = ()
    no_split_at_inner: tuple[str, ...] = ()
    always_unroll_inner: tuple[str, ...] = ()
    error: float = 0.0
    rounds_to_tf32: bool = False
    each_call: bool = False

    def __post_init__(self) -> None:
        for name in AXIS_LISTS:
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(axis, str) for axis in value):
                raise ValueError(f"{name} must be a sequence of axis names, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "error", _number("error", self.error))
        if self.flops is not None:
            object.__setattr__(self, "flops", _number("flops", self.flops))
        for name in ("rounds_to_tf32", "each_call"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")

    @property
    def axes(self) -> set[str]:
        """All axes that are named."""
        return {axis for name in AXIS_LISTS for axis in getattr(self, name)}

    def stated(self) -> dict[str, Any]:
        """The values that differ from the defaults, by name."""
        pairs = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: value for name, (value, default) in pairs.items() if value != default}


AXIS_LISTS = ("unroll_axes", "no_split_at_inner", "always_unroll_inner")
"""The attributes that name axes."""


def _number(name: str, given: object) -> int | float:
    if is_real(given) and 0 <= float(given) < inf:
        return python_number(given)
    raise ValueError(f"{name} must be a finite number of at least 0, got {given!r}")
