"""Places: of the elements that hold, and of each place in an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Buffer, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.statements import add, at, let, local, loop, put, seq

__all__ = ["Inverse", "TruePlaces"]


@dataclass(frozen=True)
class TruePlaces(Routine):
    """The places of the true elements of ``x[n]`` in order, then zeros, and last their number."""

    name: ClassVar[str] = "true_places"

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        """Each place is stored behind those found so far, whether it counts or not."""
        (x,) = inputs
        n = x.shape[0]

        def element(count: Buffer, i: Expr) -> Stmt:
            stored = let("to", at(count, 0), lambda to: put(output, to, value=i))
            return seq(stored, add(count, 0, value=at(x, i).astype(DType.INT64)))

        def run(count: Buffer) -> Stmt:
            return seq(
                loop("i", n, lambda i: put(output, i, value=0)),
                put(count, 0, value=0),
                loop("i", n, lambda i: element(count, i)),
                let("to", at(count, 0), lambda to: put(output, to, value=0)),
                put(output, n, value=at(count, 0)),
            )

        return local("count", (1,), DType.INT64, run)

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        found = np.zeros(shape, np.int64)
        places = np.flatnonzero(inputs[0])
        found[: len(places)] = places
        found[-1] = len(places)
        return found


@dataclass(frozen=True)
class Inverse(Routine):
    """For each place, where it stands in the order ``x[n]``: ``result[x[i]] = i``."""

    name: ClassVar[str] = "inverse"

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        """A place outside of the order, which has none, is limited to it."""
        (x,) = inputs
        n = x.shape[0]

        def element(i: Expr) -> Stmt:
            return let("to", at(x, i) % n, lambda to: put(output, to, value=i))

        return seq(loop("i", n, lambda i: put(output, i, value=0)), loop("i", n, element))

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        found = np.zeros(shape, np.int64)
        found[inputs[0] % max(shape[0], 1)] = np.arange(shape[0])
        return found
