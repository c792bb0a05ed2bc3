"""Reference values of a case at sampled points, in float64, for checking engines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array
from ansorpy.errors import VerificationFailed
from ansorpy.ir.interpret import evaluate_points
from ansorpy.measure.check.compare import compare, sample_points, tolerance
from benchmarks.common.cells import OURS
from benchmarks.ops.case import Case

__all__ = ["Reference"]

POINTS = 4096
TERMS = 1 << 26
OUR_TOLERANCE, PEER_TOLERANCE = 2e-5, 1e-2
"""Relative to the largest output.  For a peer, this only shows that it is the same operator: peers'
long float32 sums lose 0.2 %, while ours must stay within the error that the number of terms allows.
"""


@dataclass(frozen=True)
class Reference:
    """``values[i]`` is the output at ``points[i]``, computed by the interpreter."""

    points: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    @staticmethod
    def of(case: Case, seed: int) -> Reference:
        """Corners, edges and random points of the output, as many as take a second or two."""
        [out] = case.dag.outputs
        terms = max(1, int(case.dag_flops // out.size))
        count = min(POINTS, max(256, TERMS // terms))
        points = sample_points(out.shape, count, np.random.default_rng(seed))
        return Reference(points, evaluate_points(case.dag, case.values(seed), out, points))

    def save(self, path: Path) -> None:
        """Write the reference to a file for other processes."""
        np.savez(path, points=self.points, values=self.values)

    @staticmethod
    def load(path: Path) -> Reference:
        """Read what :meth:`save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            return Reference(file["points"], file["values"])

    def check(self, engine: str, case: Case, output: Array) -> None:
        """Check *output*, in our layout; raise :class:`VerificationFailed` if it is wrong."""
        [out] = case.dag.outputs
        least = OUR_TOLERANCE if engine == OURS else PEER_TOLERANCE
        allowed = max(tolerance(case.dag, out), least)
        got = output[tuple(self.points.T)]
        result = compare("out", got, self.values.astype(np.float32), allowed)
        if not result.ok:
            raise VerificationFailed(f"{engine} gives a wrong {case.name}: {result.reason}")
