"""The selector that measures one candidate of each cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.schedule.decisions import Decision, nearest
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Key, Pool, different

__all__ = ["KMeans"]

_ITERATIONS = 20
"""Most times that k-means moves its centres."""


@dataclass(frozen=True)
class KMeans:
    """Clusters the candidates and picks one of each cluster, as few as the knee of the loss allows.

    The clusters are those of the candidates' decisions with the largest domains.  Their number
    grows by ``step`` until the loss no longer falls by the factor ``knee``, so a round of similar
    candidates is short.  A cluster's pick is synthesised: the clustered decisions are those nearest
    to the centre, every other one is the most frequent of the cluster.  If that program is invalid
    or known, the member nearest to the centre is picked.

    Paper: Chameleon (Ahn et al., ICLR 2020), adaptive sampling and sample synthesis.  Source:
    github anony-sub/chameleon.  Differs: distances are those of the factors' logarithms, not of
    their numbers in a list; the frequencies are those of the cluster, not of all candidates; the
    loop ends at the knee, which the public code misses.

    Args:
        step: Clusters added at a time; a round of fewer trials has one cluster for each.
        most: Most clusters.
        knee: Factor by which ``step`` more clusters must lower the loss.
        decisions: Number of decisions to cluster by.
    """

    step: int = 8
    most: int = 64
    knee: float = 2.5
    decisions: int = 2

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        offered = different(pool.best)
        if len(offered) < n:
            offered = pool.candidates()
        if len(offered) <= min(n, self.step):
            return offered
        names = self._largest(offered)
        points = _points(offered, names)
        label, centres = self._clusters(points, min(n, self.most, len(offered)), rng)
        picked: dict[Key, Candidate] = {}
        for number, centre in enumerate(centres):
            members = np.flatnonzero(label == number)
            ordered = members[np.argsort(_distances(points[members], centre[None])[:, 0])]
            cluster = [offered[at] for at in ordered]
            if cluster:
                made = _synthesised(cluster, names)
                if made is None or made.key in pool.measured or made.key in picked:
                    made = cluster[0]
                picked.setdefault(made.key, made)
        for candidate in offered:
            if len(picked) < len(centres):
                picked.setdefault(candidate.key, candidate)
        return sorted(picked.values(), key=lambda c: -c.score)

    def _largest(self, offered: Sequence[Candidate]) -> list[str]:
        """Names of the decisions with the largest domains."""
        spaces = {c.sketch.key: c.sketch.space for c in offered}.values()
        sizes: dict[str, int] = {}
        for decision in (d for space in spaces for d in space.decisions):
            sizes[decision.name] = max(sizes.get(decision.name, 0), len(decision.domain.rows))
        return sorted(sizes, key=lambda name: -sizes[name])[: self.decisions]

    def _clusters(
        self, points: Floats, most: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """The cluster of each point, and the centres."""
        before = np.inf
        for k in range(min(self.step, most), most + 1, self.step):
            label, centres, loss = _k_means(points, k, rng)
            if loss >= before / self.knee:
                break
            before = loss
        return label, centres


def _points(offered: Sequence[Candidate], names: Sequence[str]) -> Floats:
    """Logarithms of the named decisions' columns, one row a candidate; -1 where it has none."""
    columns: dict[str, int] = {}
    for candidate in offered:
        for decision in _named(candidate, names):
            for column in decision.columns:
                columns.setdefault(column, len(columns))
    points = np.full((len(offered), len(columns)), -1.0)
    for point, candidate in zip(points, offered, strict=True):
        for decision in _named(candidate, names):
            values = candidate.row[candidate.sketch.space.slices[decision.name]]
            point[[columns[c] for c in decision.columns]] = _logarithm(values)
    return points


def _named(candidate: Candidate, names: Sequence[str]) -> list[Decision]:
    return [d for d in candidate.sketch.space.decisions if d.name in names]


def _logarithm(values: Table) -> Floats:
    logarithm: Floats = np.log2(np.maximum(values, 0) + 1.0)
    return logarithm


def _synthesised(cluster: Sequence[Candidate], names: Sequence[str]) -> Candidate | None:
    """The typical program of a *cluster* around its first member; None if it is invalid."""
    sketch = cluster[0].sketch
    table = np.array([c.row for c in cluster if c.sketch.key == sketch.key])
    row = cluster[0].row.copy()
    for decision in sketch.space.decisions:
        part = table[:, sketch.space.slices[decision.name]]
        if decision.name in names:
            centre = np.rint(np.exp2(_logarithm(part).mean(axis=0)) - 1).astype(np.int64)
            row[sketch.space.slices[decision.name]] = nearest(decision.domain, centre[None])[0]
        else:
            [(common, _)] = Counter(map(tuple, part.tolist())).most_common(1)
            row[sketch.space.slices[decision.name]] = common
    return replace(cluster[0], row=row) if sketch.valid(row[None])[0] else None


def _k_means(
    points: Floats, k: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], Floats, float]:
    """(cluster of each point, *k* centres, sum of squared distances), from k-means++ centres."""
    centres = points[[rng.integers(len(points))]]
    while len(centres) < k:
        far = _distances(points, centres).min(axis=1)
        chance = far / far.sum() if far.any() else None
        centres = np.concatenate([centres, points[[rng.choice(len(points), p=chance)]]])
    label = _distances(points, centres).argmin(axis=1)
    for _ in range(_ITERATIONS):
        kept = [points[label == n].mean(axis=0) if (label == n).any() else c
                for n, c in enumerate(centres)]  # fmt: skip
        centres, before = np.array(kept), label
        label = _distances(points, centres).argmin(axis=1)
        if (label == before).all():
            break
    return label, centres, float(_distances(points, centres).min(axis=1).sum())


def _distances(points: Floats, centres: Floats) -> Floats:
    """Squared distance of each point from each centre."""
    distances: Floats = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    return distances
