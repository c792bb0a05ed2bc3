"""Bayesian optimisation with a Gaussian process and a portfolio of acquisition functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import erf, pi, sqrt

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Space, Table, hull
from ansorpy.search.gaussian_process import Points, Posterior, posterior
from ansorpy.search.points import positions
from ansorpy.search.population import Candidate, Key, Pool, by_sketch, different, sample_valid
from ansorpy.search.strategy import Context, Results, fastest

__all__ = ["ACQUISITIONS", "BayesOpt", "Portfolio", "encoded"]

Acquisition = Callable[[Floats, Floats, float, float], Floats]


@dataclass
class BayesOpt:
    """Measures the candidates that a Gaussian process of the measured times finds worth trying.

    Every column of a placed sketch is a dimension, scaled by the rank of its value; the placed
    sketch is one more.  After ``initial`` correct programs spread over the space, acquisition
    functions take turns to choose (:class:`Portfolio`).  They explore by a factor that falls with
    the mean deviation of the unmeasured candidates and with the improvement over the initial
    programs (contextual variance).

    Paper: Willemsen et al., arXiv 2111.14991.  Source: Kernel Tuner's ``bayes_opt`` with its
    defaults: Matern 3/2, length 1.5, 20 points of a Latin hypercube, ``advanced multi``.  Differs:
    most spaces cannot be enumerated, so each round considers ``candidates`` rows: whole spaces
    where they fit, else samples and the neighbours of the fastest programs.  A round has several
    trials; each choice treats those before it as measured with their expected result.  The process
    predicts the logarithm of the time, and at most ``observed`` programs, the fastest, enter it.

    Args:
        sketches: Placed sketches per round, apart from those of the fastest programs.
        leaders: Number of fastest programs whose neighbours are candidates.
        margin: An exploration factor of 1 asks for an improvement by this many standard deviations
            of the measured times; ours, as the unit of the source's margin is that of the times.
    """

    initial: int = 20
    length: float = 1.5
    margin: float = 0.1
    sketches: int = 8
    leaders: int = 8
    candidates: int = 4096
    observed: int = 512
    designs: int = 1000
    _timed: list[tuple[float, Candidate]] = field(default_factory=list, repr=False)
    """Seconds and candidates of the correct programs, in the order they were measured."""
    _design: list[Candidate] | None = field(default=None, repr=False)
    _portfolio: Portfolio = field(default_factory=lambda: Portfolio(), repr=False)
    _asked: dict[Key, str] = field(default_factory=dict, repr=False)
    """The acquisition function that chose each candidate of the last round."""
    _initial_deviation: float | None = field(default=None, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        made = [Candidate(sketch, row) for sketch, table in self._tables(context) for row in table]
        everyone = different(context.new(made))
        if not everyone:
            return Pool(())
        order = context.rng.permutation(len(everyone))[: 2 * n].tolist()
        if len(self._timed) < self.initial:
            best, judged = self._spread(everyone, n, context), everyone
        else:
            best, judged = self._chosen(everyone, n)
        return Pool(tuple(best), tuple(judged[at] for at in order))

    def tell(self, found: Results) -> None:
        self._timed += [(result.median_s, c) for c, result in found if result.ok]
        if not self._timed:
            return
        usual_s = float(np.median([seconds for seconds, _ in self._timed]))
        for candidate, result in found:
            name = self._asked.pop(candidate.key, None)
            if name is not None:
                self._portfolio.tell(name, result.median_s if result.ok else usual_s)

    def _tables(self, context: Context) -> list[tuple[PlacedSketch, Table]]:
        """The rows to choose from: of the fastest programs' sketches and of new ones."""
        leaders = [candidate for _, candidate in fastest(self._timed, (), self.leaders)]
        sketches = {c.sketch.key: c.sketch for c in leaders}
        for sketch in context.source.draw(self.sketches, context.rng):
            sketches.setdefault(sketch.key, sketch)
        each = self.candidates // max(len(sketches), 1)
        tables = []
        for key, sketch in sketches.items():
            if sketch.space.size <= each:
                table = sketch.space.rows(0, sketch.space.size)
                table = table[sketch.valid(table)]
            else:
                own = [c.row for c in leaders if c.sketch.key == key]
                near = [_around(sketch, row) for row in own]
                table = np.concatenate([sample_valid(sketch, each, context.rng), *near])
            tables.append((sketch, table))
        return tables

    def _spread(self, everyone: Sequence[Candidate], n: int, context: Context) -> list[Candidate]:
        """The next points of the initial design; random ones once it is used up."""
        if self._design is None:
            self._design = _latin_hypercube(everyone, self.initial, self.designs, context.rng)
        self._design = context.new(self._design)
        order = context.rng.permutation(len(everyone))
        return different([*self._design, *(everyone[at] for at in order)])[:n]

    def _chosen(
        self, everyone: Sequence[Candidate], n: int
    ) -> tuple[list[Candidate], list[Candidate]]:
        """*n* candidates, each the best by the acquisition function whose turn it is.

        Also returns *everyone*, scored by the mean speed that the process expects.
        """
        measured = fastest(self._timed, (), self.observed)
        points = encoded([*(c for _, c in measured), *everyone])
        known, unknown = np.split(np.arange(len(points)), [len(measured)])
        logs = np.log([s for s, _ in measured])
        mean, spread = float(logs.mean()), max(float(logs.std()), 1e-12)
        found = posterior(points.at(known), logs, points.at(unknown), self.length)
        explore = self._exploration(found)
        goal = (float(logs.min()) - mean) / spread - self.margin * explore
        speeds = np.exp(-found.mean * spread - mean).tolist()
        judged = [Candidate(c.sketch, c.row, s) for c, s in zip(everyone, speeds, strict=True)]
        open_ = np.ones(len(everyone), dtype=np.bool_)
        picked, self._asked = [], {}
        for name in self._portfolio.turns(min(n, len(everyone))):
            values = ACQUISITIONS[name](found.mean, found.deviation, goal, explore)
            at = int(np.argmax(np.where(open_, values, -np.inf)))
            open_[at] = False
            picked.append(judged[at])
            self._asked[judged[at].key] = name
            found.assume(at)
        return picked, judged

    def _exploration(self, found: Posterior) -> float:
        """The contextual variance: 1 at first, less as the process knows more and finds better."""
        deviation = float(found.deviation.mean())
        if self._initial_deviation is None:
            self._initial_deviation = deviation
        seconds = [s for s, _ in self._timed]
        gained = float(np.mean(seconds[: self.initial])) / min(seconds)
        return deviation / gained / self._initial_deviation


@dataclass
class Portfolio:
    """Acquisition functions that take turns; poor ones leave, and a clearly better one stays alone.

    A function's value is the discounted mean of the times that its choices took.  It counts against
    a function if its value is ``margin`` above the mean of all, and for it if it is as much below.
    At ``patience`` counts, the function leaves, or the others do.

    Source: Kernel Tuner's ``advanced multi``: discount 0.95, 10 % and 5 counts.
    """

    discount: float = 0.95
    margin: float = 0.1
    patience: int = 5
    active: list[str] = field(default_factory=lambda: [*ACQUISITIONS])
    _times: dict[str, list[float]] = field(default_factory=dict, repr=False)
    _worse: dict[str, int] = field(default_factory=dict, repr=False)
    _better: dict[str, int] = field(default_factory=dict, repr=False)
    _turn: int = field(default=0, repr=False)

    def turns(self, n: int) -> Iterator[str]:
        """The functions of the next *n* choices."""
        for _ in range(n):
            yield self.active[self._turn % len(self.active)]
            self._turn += 1

    def tell(self, name: str, seconds: float) -> None:
        """Count the result of a choice of *name*."""
        self._times.setdefault(name, []).append(seconds)
        if name != self.active[-1] or not all(a in self._times for a in self.active):
            return
        values = {a: self._value(self._times[a]) for a in self.active}
        mean = sum(values.values()) / len(values)
        for each, value in values.items():
            self._worse[each] = self._worse.get(each, 0) + (value > (1 + self.margin) * mean)
            self._better[each] = self._better.get(each, 0) + (value < (1 - self.margin) * mean)
        best = max(self.active, key=lambda a: self._better[a])
        worst = max(self.active, key=lambda a: self._worse[a])
        if self._better[best] >= self.patience:
            self.active = [best]
        elif self._worse[worst] >= self.patience and len(self.active) > 1:
            self.active = [a for a in self.active if a != worst]

    def _value(self, times: Sequence[float]) -> float:
        weights = self.discount ** np.arange(len(times) - 1, -1, -1)
        return float(np.average(times, weights=weights))


def _expected_improvement(mean: Floats, deviation: Floats, goal: float, explore: float) -> Floats:
    gain = goal - mean
    scaled = gain / deviation
    density = np.exp(-0.5 * scaled**2) / sqrt(2 * pi)
    return gain * _normal(scaled) + deviation * density


def _probability_of_improvement(
    mean: Floats, deviation: Floats, goal: float, explore: float
) -> Floats:
    return (goal - mean) / deviation


def _lower_confidence_bound(mean: Floats, deviation: Floats, goal: float, explore: float) -> Floats:
    return explore * deviation - mean


ACQUISITIONS: Mapping[str, Acquisition] = {
    "ei": _expected_improvement,
    "poi": _probability_of_improvement,
    "lcb": _lower_confidence_bound,
}
"""By name, the value of each candidate, from its mean and deviation, the time to fall below and the
factor of exploration; the largest is chosen.  The probability of improvement is given by the
argument of the normal distribution, which has the same order."""


def _normal(x: Floats) -> Floats:
    """The cumulative normal distribution."""
    found: Floats = np.array([0.5 * (1 + erf(v / sqrt(2))) for v in x.tolist()])
    return found


def encoded(candidates: Sequence[Candidate]) -> Points:
    """The candidates as points: by column name, the rank of its value, scaled to 0..1.

    A column that a placed sketch lacks is in the middle.  Columns with one value are left out.
    """
    groups = [(_open_columns(s.space), s, t, members) for s, t, members in by_sketch(candidates)]
    names = sorted({name for columns, *_ in groups for name in columns})
    x, group = np.full((len(candidates), len(names)), 0.5), np.empty(len(candidates), np.int64)
    for number, (columns, sketch, table, members) in enumerate(groups):
        at = [names.index(name) for name in columns]
        x[np.ix_(members, at)] = positions(sketch.space, table)[:, [*columns.values()]]
        group[members] = number
    return Points(x, group)


def _open_columns(space: Space) -> dict[str, int]:
    """The numbers of the columns that have several values, by name."""
    low, high = hull(space.domains)
    return {space.columns[at]: at for at in np.flatnonzero(low != high).tolist()}


def _around(sketch: PlacedSketch, row: Table) -> Table:
    """The valid rows that differ from *row* in one step of one decision."""
    names = [d.name for d in sketch.space.decisions]
    steps = [sketch.space.neighbours(row, name) for name in names]
    table = np.concatenate([row[None][:0], *steps])
    return table[sketch.valid(table)]


def _latin_hypercube(
    everyone: Sequence[Candidate], n: int, designs: int, rng: np.random.Generator
) -> list[Candidate]:
    """Candidates nearest to the most spread of *designs* Latin hypercubes, sketches in turns."""
    points = encoded(everyone)
    dimensions = points.x.shape[1]
    strata = rng.permuted(np.tile(np.arange(n), (designs, dimensions, 1)), axis=2)
    drawn = (strata.transpose(0, 2, 1) + rng.random((designs, n, dimensions))) / n
    squared = (drawn**2).sum(axis=2)
    apart = squared[:, :, None] + squared[:, None, :] - 2 * drawn @ drawn.transpose(0, 2, 1)
    apart += 1e9 * np.eye(n)
    design = drawn[int(apart.min(axis=(1, 2)).argmax())]
    groups = rng.permutation(int(points.group.max()) + 1)
    found = []
    for number, place in enumerate(design):
        members = np.flatnonzero(points.group == groups[number % len(groups)])
        nearest = members[((points.x[members] - place) ** 2).sum(axis=1).argmin()]
        found.append(everyone[int(nearest)])
    return different(found)
