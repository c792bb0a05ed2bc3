"""Gaussian-process regression for programs, whose candidates are a fixed set of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats

__all__ = ["Points", "Posterior", "matern", "posterior"]

_JITTER = 1e-10


@dataclass(frozen=True)
class Points:
    """Points in the unit cube, each of a group; two of different groups are 1 further apart."""

    x: Floats
    group: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)

    def distances(self, other: Points) -> Floats:
        """The distance of each of these points to each of *other*."""
        squared = (self.x**2).sum(axis=1)[:, None] + (other.x**2).sum(axis=1)
        squared = squared - 2 * self.x @ other.x.T
        apart: Floats = np.sqrt(np.maximum(squared, 0.0) + (self.group[:, None] != other.group))
        return apart

    def at(self, chosen: npt.ArrayLike) -> Points:
        """The points with these numbers."""
        index = np.asarray(chosen, dtype=np.intp)
        return Points(self.x[index], self.group[index])


def matern(distance: Floats, length: float) -> Floats:
    """The Matern kernel with smoothness 3/2."""
    scaled = np.sqrt(3.0) * distance / length
    found: Floats = (1 + scaled) * np.exp(-scaled)
    return found


@dataclass
class Posterior:
    """Mean and deviation of each candidate, in standard deviations of the observations.

    :meth:`assume` adds an observation of a candidate at its mean, which changes only deviations.
    """

    candidates: Points
    mean: Floats
    variance: Floats
    length: float
    _solved: Floats
    """Rows of ``inverse(L) @ kernel(observed, candidates)``; L: the Cholesky factor."""

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each candidate."""
        found: Floats = np.sqrt(np.maximum(self.variance, _JITTER))
        return found

    def assume(self, at: int) -> None:
        """Update the deviations as if candidate *at* were observed."""
        new = matern(self.candidates.distances(self.candidates.at([at]))[:, 0], self.length)
        new = new - self._solved[:, at] @ self._solved
        new /= np.sqrt(max(float(self.variance[at]), _JITTER))
        self._solved = np.concatenate([self._solved, new[None]])
        self.variance = self.variance - new**2


def posterior(observed: Points, values: Floats, candidates: Points, length: float) -> Posterior:
    """The posterior of *candidates*; *values* of the *observed* points are normalised."""
    spread = max(float(values.std()), 1e-12)
    normalised = (values - values.mean()) / spread
    kernel = matern(observed.distances(observed), length)
    factor = np.linalg.cholesky(kernel + 1e-6 * np.eye(len(observed)))
    solved = np.linalg.solve(factor, matern(observed.distances(candidates), length))
    mean = np.linalg.solve(factor, normalised) @ solved
    return Posterior(candidates, mean, 1 - (solved**2).sum(axis=0), length, solved)
