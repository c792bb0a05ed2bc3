"""Extrapolates learning curves: how fast a task's best program will be after more trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats

__all__ = ["CurvePosterior", "Sampler", "log_power"]


@dataclass(frozen=True)
class CurvePosterior:
    """Curves ``a / (1 + (x / e**b)**c)`` that may have produced the points seen so far.

    ``samples[:, 0:3]`` are *a*, *b* and *c*.
    """

    samples: Floats

    def at(self, trials: float) -> Floats:
        """The values of all sampled curves after *trials* trials."""
        return log_power(self.samples, np.array([trials]))[:, 0]


def log_power(parameters: Floats, x: Floats) -> Floats:
    """``value[curve, point]`` of the curves with these rows of parameters; they rise to *a*."""
    a, b, c = (parameters[:, k, None] for k in range(3))
    found: Floats = a / (1 + np.exp(c * (np.log(x) - b)))
    return found


@dataclass(frozen=True)
class Sampler:
    """Samples the posterior of log-power curves with an affine-invariant ensemble.

    The priors are uniform within bounds; noise is normal, with an unknown deviation.  Walkers start
    at the most likely of ``drawn`` draws of *b* and *c*, each with the *a* and the deviation that
    fit best.  A step moves half of the walkers, each along the line through a walker of the other
    half.

    Paper: Goodman and Weare, "Ensemble samplers with affine invariance", 2010; the curve, 10
    walkers, 500 steps, 300 of them burn-in, every 10th kept: DynaTune, ICLR 2021, with
    pylearningcurvepredictor.  Differs: there, walkers start at a least-squares fit.
    """

    walkers: int = 10
    steps: int = 500
    burn_in: int = 300
    thin: int = 10
    drawn: int = 1024

    def fit(self, x: Floats, y: Floats, most: float, rng: np.random.Generator) -> CurvePosterior:
        """Curves through the points *y* after *x* trials that end at most at *most*."""
        low = np.array([0.0, 0.0, -4.0, np.log(1e-3)])
        high = np.array([most, 8.0, -0.05, 0.0])

        def likelihood(walkers: Floats) -> Floats:
            inside = ((walkers >= low) & (walkers <= high)).all(axis=1)
            missed = log_power(walkers, x) - y
            deviation = walkers[:, 3]
            fit = -0.5 * np.exp(-2 * deviation) * (missed**2).sum(axis=1) - len(x) * deviation
            return np.where(inside, fit, -np.inf)

        draws = rng.uniform(low, high, size=(self.drawn, len(low)))
        draws[:, 0] = 1.0
        shape = log_power(draws, x)
        draws[:, 0] = np.clip(shape @ y / (shape**2).sum(axis=1), 1e-9, most)
        missed = ((draws[:, :1] * shape - y) ** 2).mean(axis=1)
        draws[:, 3] = np.clip(0.5 * np.log(missed + np.exp(2 * low[3])), low[3], high[3])
        start = draws[np.argsort(-likelihood(draws), kind="stable")[: self.walkers]]
        return CurvePosterior(self._walk(likelihood, start, rng))

    def _walk(
        self, likelihood: Callable[[Floats], Floats], walkers: Floats, rng: np.random.Generator
    ) -> Floats:
        half, size = self.walkers // 2, walkers.shape[1]
        values, kept = likelihood(walkers), []
        for step in range(self.steps):
            for own, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
                current, count = walkers[own], len(walkers[own])
                stretch = (1 + rng.random(count)) ** 2 / 2
                partners = walkers[other]
                base = partners[rng.integers(len(partners), size=count)]
                proposed = base + stretch[:, None] * (current - base)
                found = likelihood(proposed)
                gain = (size - 1) * np.log(stretch) + found - values[own]
                accepted = np.log(rng.random(count)) < gain
                walkers[own] = np.where(accepted[:, None], proposed, current)
                values[own] = np.where(accepted, found, values[own])
            if step >= self.burn_in and step % self.thin == 0:
                kept.append(walkers.copy())
        return np.concatenate(kept)
