"""Outputs of a program that share the memory of an input, which they continue."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.symbols import Dim

__all__ = ["Alias"]


@dataclass(frozen=True)
class Alias:
    """Output number ``output`` is input number ``input`` with more elements along ``axis``.

    Both begin at the same address, and both have the strides of a dense tensor whose extent along
    the axis is ``capacity``: one that each call states, or the extent of the output.  The capacity
    does not matter if all axes before have extent 1.
    """

    input: int
    output: int
    axis: int
    capacity: Dim | None = None
