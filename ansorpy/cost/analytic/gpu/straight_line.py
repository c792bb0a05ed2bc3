"""The straight-line code that CUDA codegen emits for a sum's inner loops, per candidate."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.codegen.cuda.passes.unroll_sums import MOST_PRODUCTS, MOST_STEPS
from ansorpy.cost.access import AccessView
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind

__all__ = ["Body"]


class Body:
    """The innermost loops of a statement, unrolled as
    :mod:`ansorpy.codegen.cuda.passes.unroll_sums` does.

    Attributes:
        depth: Number of loops down to the innermost reduce loop; all loops if there is none.
        sums: Results that one step adds to, in one virtual thread.
        steps: Steps of the reduction in the body.
    """

    def __init__(self, view: LeafView, first: int):
        self.view = view
        kinds = [loop.kind for loop in view.leaf.loops]
        is_sum = AxisKind.REDUCE in kinds
        self.depth = len(kinds) - kinds[::-1].index(AxisKind.REDUCE) if is_sum else len(kinds)
        self.sums = view.inner_prod[self.depth]
        self._factors: dict[int, Floats] = {}
        """How many iterations of each reduce loop are in the body."""
        self.steps: Floats = np.ones(view.rows)
        self._unroll(first)

    def _unroll(self, first: int) -> None:
        virtual: Floats = np.ones(self.view.rows)
        for n, loop in enumerate(self.view.leaf.loops):
            if loop.index is ForKind.VTHREAD:
                virtual = virtual * self.view.extent[n]
        going: Masks = np.ones(self.view.rows, dtype=bool)
        for n in reversed(range(first, self.depth)):
            loop, extent = self.view.leaf.loops[n], self.view.extent[n]
            if loop.kind is not AxisKind.REDUCE or loop.index.is_bound:
                continue
            written = self.sums * virtual * self.steps
            most = np.minimum(MOST_PRODUCTS // written, MOST_STEPS // self.steps)
            at_once = np.where(going, _divisor(extent, most), 1.0)
            self._factors[n] = at_once
            self.steps = self.steps * at_once
            going = going & (at_once == extent)

    @cached_property
    def _boxed(self) -> dict[int, Masks]:
        """For each reduce loop, innermost first: where the body reads its whole box.

        This holds where all iterations are in the body and no loop inside is shared by threads.
        """
        loops = self.view.leaf.loops
        return {
            n: (at_once == self.view.extent[n])
            & all(not loop.index.is_bound for loop in loops[n : self.depth])
            for n, at_once in self._factors.items()
        }

    def inside(self, loop: int) -> Masks:
        """Where the body contains several iterations of a loop."""
        if loop >= self.depth:
            return np.ones(self.view.rows, dtype=bool)
        found: Masks = self._factors.get(loop, np.ones(self.view.rows)) > 1
        return found

    def is_whole(self, loop: int) -> Masks:
        """Where the body contains all iterations of a reduce loop."""
        found: Masks = self._factors.get(loop, np.zeros(self.view.rows)) == self.view.extent[loop]
        return found

    def elements(self, access: AccessView) -> Floats:
        """Distinct elements that one virtual thread reads in the body; each is loaded once."""
        found = access.region[self.depth]
        for n, at_once in self._factors.items():
            part = found * at_once if n in access.moves else found
            found = np.where(self._boxed[n], access.region[n], part)
        return found

    def run(self, access: AccessView) -> Floats:
        """Length of the contiguous runs of these elements in memory."""
        found = access.run[self.depth]
        for n, at_once in self._factors.items():
            part = (
                np.where(access.flat[n] == 1, found * at_once, found) if n in access.flat else found
            )
            found = np.where(self._boxed[n], access.run[n], part)
        return found

    def is_along(self, access: AccessView) -> Masks:
        """Where elements that are adjacent in memory are steps of the reduction."""
        found: Masks = np.zeros(self.view.rows, dtype=bool)
        for n, at_once in self._factors.items():
            if n in access.flat:
                found = found | ((access.flat[n] == 1) & (at_once > 1))
        return found


def _divisor(extent: Floats, most: Floats) -> Floats:
    """The largest divisor of *extent* that is at most *most*.

    See :func:`ansorpy.codegen.cuda.passes.unroll_sums.steps_at_once`.
    """
    found: Floats = np.ones(len(extent))
    for n in range(2, MOST_STEPS + 1):
        found = np.where((extent % n == 0) & (most >= n), float(n), found)
    return found
