"""Evolutionary search over population tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.protocol import Correcting
from ansorpy.errors import UsageError
from ansorpy.rules.placed_sketch import Pair, PlacedSketch
from ansorpy.schedule.decisions import open_columns
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.search.allocation import Allocation
from ansorpy.search.population import (
    Candidate,
    Pool,
    Scored,
    best_groups,
    different,
    fittest,
    in_turns,
    merged,
    roulette,
    sample_valid,
    score,
    score_all,
    scored_again,
    scored_together,
)
from ansorpy.search.strategy import Context, Results, fastest
from ansorpy.search.variety import Tried, varied

__all__ = ["Evolution", "PredictOptions", "crossover", "genes", "unmeasured"]

_FEW = 6
"""A first round of so many trials measures what would be chosen without any."""


@dataclass(frozen=True)
class PredictOptions:
    """Search effort: placed sketches sampled, rows per generation, generations, programs returned.

    The children of the first generation come from the best ``survivors`` placed sketches, those of
    the next from half as many.  Two survivors instead of three take a seventh less time, for
    programs that the model rates alike (geometric mean 0.999, between 0.94 and 1.05, over 119
    predictions of resnet50, densenet121, MobileNetV2 and Inception v2).  A single generation takes
    another twentieth less, but convolutions with several definitions are up to 1.16 times as slow.
    Eight sketches instead of six take 1.3 times the time, for programs that the model rates alike
    (geometric mean 0.998, between 0.96 and 1.02, over 41 tasks of resnet50 and BERT); with four,
    some are up to 2.8 times as slow.
    """

    sketches: int = 6
    survivors: int = 2
    population: int = 1024
    generations: int = 2
    answers: int = 2
    seed: int = 0
    pretrained: bool = True
    """Whether the model that ships for the machine's family chooses, if there is one."""
    drafts: int = 32
    """For so many candidates the search is asked if another model leads it than the one that
    chooses among them; it offers up to four times as many.  Measured on 102 tasks of five networks
    that the model never saw (one of trees of 63 leaves): its first choices are 1.08, 1.09 and 1.10
    times as fast as the analytic model's with 4, 16 and 32, and no faster with 64 or 200."""


@dataclass
class Evolution:
    """Sample, then repeat: score, select in proportion to score, mutate and cross.

    A round draws new placed sketches and keeps those of the best measured programs; each is a table
    of its own, and crossover stays inside a table.  Each (definition, sketch) pair breeds and
    offers its share (:class:`~ansorpy.search.allocation.Allocation`), alternating between its best
    unmeasured candidates of all generations and those of the first generation, both chosen for
    variety (:func:`~ansorpy.search.variety.varied`).  A few random candidates are added.

    Paper: OSDI'20 §5.1.  Source: TVM's SketchPolicy (4 generations, 85 % mutation, a fifth of the
    population from measured programs).  Differs: populations are tables, so there is no Python code
    per candidate, and have 1,536 rows instead of 2,048.  Scores are shifted by the generation's
    worst before selection.  Crossover, which TVM never released, follows the paper.  The first
    generation also offers candidates, because a model trained on few trials is most wrong where
    evolution takes it.  Among nearly identical programs, which the model judges alike, only a few
    are measured first, and the model's error on these counts for the rest.  A first round of few
    trials, as networks get under a time limit, measures what :func:`unmeasured` finds: generations
    would take longer than its trials, while other tasks wait for theirs.  Measured after a minute,
    beside five placed sketches and two generations: networks run 1.02 times as fast (geometric mean
    of seven runs of five networks, between 0.98 and 1.06).
    """

    sketches: int = 10
    scouts: int = 16
    """Placed sketches drawn while nothing has been measured, when breadth matters most."""
    population: int = 1536
    generations: int = 4
    mutation: float = 0.85
    crossover: float = 0.3
    measured_share: float = 0.2
    smallest_group: int = 48
    considered: int = 256
    """Rows of each placed sketch that may be offered."""
    doubt: float = 0.25
    """Expected error of a score's logarithm where nothing similar has been measured; 0 leaves the
    scores' order."""
    survivors: int | None = None
    """If set, nothing will be measured, so that only the model counts: this many placed sketches
    have children at first, and half as many in each later generation, and definitions
    that cannot reach the best score by the model's own bound are left out."""
    _elites: list[tuple[float, Candidate]] = field(default_factory=list, repr=False)
    _pairs: Allocation | None = field(default=None, repr=False)
    _shares: dict[Pair, float] = field(default_factory=dict, repr=False)
    _told: list[tuple[Pair, float]] = field(default_factory=list, repr=False)
    """Trials of earlier runs, received before the first call of :meth:`ask`."""
    _tried: list[Tried] = field(default_factory=list, repr=False)
    _prepared: tuple[list[Scored], list[Scored]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if min(self.sketches, self.scouts) < 1:
            raise UsageError(
                f"evolution with {self.sketches} sketches and {self.scouts} scouts draws nothing",
                hint="give at least 1 of each",
            )

    def ask(self, context: Context, n: int) -> Pool:
        if n <= _FEW and self.survivors is None and not context.measured:
            return unmeasured(context)
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            newcomers, found = self._generations(context)
        else:
            newcomers, found = self._continued(*prepared, context)
        if self.doubt:
            found = self._merged(found, n, context)
        pairs = self._allocation(context)
        self._shares = pairs.shares(_best_scores(found))
        offers = {
            pair: self._offers(pair, found, newcomers, 2 * n, context) for pair in self._shares
        }
        best = islice(pairs.in_turns(offers, self._shares), 4 * n)
        return Pool(tuple(best), context.some(newcomers, n))

    def prepare(self, context: Context, n: int) -> None:
        """Breed generations ahead; the next :meth:`ask` scores them again and breeds one more.

        Of each pair it keeps as many of the best rows as of a placed sketch, besides the measured.
        Measured on a formula, after 192 trials of a product: 20 % slower programs than without
        preparing if no generation follows the results, 6 % if one does.
        """
        newcomers, found = self._generations(context)
        pairs: dict[Pair, list[Scored]] = {}
        for group in self._merged(found, n, context):
            pairs.setdefault(group.sketch.pair, []).append(group)
        measured, kept = context.measured_of, list[Scored]()
        for own in pairs.values():
            known = sum(measured[group.sketch.key] for group in own)
            kept += fittest(own, self._kept(n) + known)
        self._prepared = newcomers, kept

    def _continued(
        self, newcomers: Sequence[Scored], found: Sequence[Scored], context: Context
    ) -> tuple[list[Scored], list[Scored]]:
        """What was prepared, scored by today's model, and a generation more."""
        tables = [(group.sketch, group.table) for group in (*newcomers, *found)]
        again = scored_together(context.task, context.model, tables)
        first, every = again[: len(newcomers)], again[len(newcomers) :]
        self._shares = self._allocation(context).shares(_best_scores(every))
        return first, [*every, *self._next(every, context)]

    def _generations(self, context: Context) -> tuple[list[Scored], list[Scored]]:
        """The first generation, and all of them."""
        pairs = self._allocation(context)
        groups = self._first(context, pairs)
        newcomers = [g for g in groups if len(g)]
        found = list(groups)
        for past in range(self.generations):
            if self.survivors is not None:
                groups = best_groups(groups, max(1, self.survivors >> past))
            alive = found if self.survivors is None else groups
            self._shares = pairs.shares(_best_scores(alive))
            groups = self._next(groups, context)
            found += groups
        return newcomers, found

    def _merged(self, found: Sequence[Scored], n: int, context: Context) -> list[Scored]:
        """The best distinct rows of each placed sketch, besides the measured ones."""
        measured = context.measured_of
        return [merged(found, s, self._kept(n) + measured[s.key]) for s in _sketches(found)]

    def _kept(self, n: int) -> int:
        return max(2 * n, self.considered)

    def _allocation(self, context: Context) -> Allocation:
        if self._pairs is None:
            self._pairs = Allocation(context.task, context.source)
            self._pairs.tell(self._told)
        return self._pairs

    def tell(self, found: Results) -> None:
        limit = int(self.measured_share * self.population)
        self._elites = fastest(self._elites, found, limit)
        self._tried += Tried.of(found)
        told = [(c.sketch.pair, r.known_s) for c, r in found]
        if self._pairs is None:
            self._told += told
        else:
            self._pairs.tell(told)

    def _first(self, context: Context, pairs: Allocation) -> list[Scored]:
        """The first generation: placed sketches of elites, their neighbours, and new ones."""
        rng, shares = context.rng, self._open_shares(pairs)
        elites = self._best_sketches(shares)
        rows: dict[str, Table] = {
            elite.key: np.array([c.row for _, c in self._elites if c.sketch.key == elite.key])
            for elite in elites
        }
        sketches: dict[str, PlacedSketch] = {}
        for elite in elites:
            sketches[elite.key] = elite
            moved = elite.neighbour(rng)
            if moved is not None and moved.key not in rows:
                sketches[moved.key] = moved
                adopted = moved.adopt(elite, rows[elite.key], rng)
                rows[moved.key] = adopted[moved.valid(adopted)]
        for drawn in context.source.draw(self.sketches if rows else self.scouts, rng, shares):
            sketches.setdefault(drawn.key, drawn)
        share = -(-self.population // max(len(sketches), 1))
        if self.survivors is not None:
            return _reaching(sketches.values(), share, context, pairs)
        tables = []
        for key, sketch in sketches.items():
            known = rows.get(key, np.zeros((0, len(sketch.columns)), dtype=np.int64))
            sampled = sample_valid(sketch, max(share - len(known), 1), rng)
            tables.append((sketch, np.concatenate([known, sampled])))
        return score_all(context.task, context.model, tables)

    def _open_shares(self, pairs: Allocation) -> dict[Pair, float]:
        """The last round's shares without the pairs closed since; equal in the first round."""
        shares = {pair: self._shares.get(pair, 0.0) for pair in pairs.open()}
        total = sum(shares.values())
        return {p: share / total if total else 1 / len(shares) for p, share in shares.items()}

    def _offers(
        self,
        pair: Pair,
        found: Sequence[Scored],
        newcomers: Sequence[Scored],
        n: int,
        context: Context,
    ) -> list[Candidate]:
        """Candidates of *pair*, best first, alternating between all generations and the first."""
        tried = [t for t in self._tried if t.candidate.sketch.pair == pair]
        evolved, surveyed = (
            varied(
                [g for g in groups if g.sketch.pair == pair],
                n, tried, context.measured, self.doubt,
            )
            for groups in (found, newcomers)
        )  # fmt: skip
        return different(in_turns(evolved, surveyed))

    def _best_sketches(self, among: Iterable[Pair]) -> list[PlacedSketch]:
        """Placed sketches of the best measured programs, at most half of a round's."""
        kept: dict[str, PlacedSketch] = {}
        allowed = set(among)
        for _, candidate in self._elites:
            if candidate.sketch.pair not in allowed:
                continue
            kept.setdefault(candidate.sketch.key, candidate.sketch)
        return list(kept.values())[: self.sketches // 2]

    def _next(self, groups: Sequence[Scored], context: Context) -> list[Scored]:
        """The next generation, divided among the pairs by share."""
        children: list[tuple[PlacedSketch, Table]] = []
        for pair, share in self._shares.items():
            own = [g for g in groups if g.sketch.pair == pair and len(g)]
            children += self._generation(own, round(share * self.population), context.rng)
        return score_all(context.task, context.model, children)

    def _generation(
        self, groups: Sequence[Scored], size: int, rng: np.random.Generator
    ) -> list[tuple[PlacedSketch, Table]]:
        """*size* children of *groups*; placed sketches that would get very few die out."""
        if not groups or not size:
            return []
        worst = min(float(g.scores.min()) for g in groups)
        weights = [g.scores - worst for g in groups]
        total = sum(float(w.sum()) for w in weights)
        smallest = min(self.smallest_group, size // (2 * len(groups)))
        children = []
        for group, weight in zip(groups, weights, strict=True):
            part = weight.sum() / total if total > 0 else 1 / len(groups)
            each = int(round(size * part))
            if each >= max(smallest, 1):
                children.append((group.sketch, self._breed(group, weight, each, rng)))
        return children

    def _breed(self, group: Scored, weight: Floats, size: int, rng: np.random.Generator) -> Table:
        """*size* children; one that breaks a constraint is replaced by its parent."""
        space = group.sketch.space
        parents = group.table[roulette(weight, size, rng)]
        others = group.table[roulette(weight, size, rng)]
        children = parents.copy()
        crossed = rng.random(size) < self.crossover
        if crossed.any():
            children[crossed] = crossover(space, parents[crossed], others[crossed], rng)
        mutated = rng.random(size) < self.mutation
        if mutated.any():
            children[mutated] = group.sketch.mutate(children[mutated], rng)
        valid = space.valid(children)
        return np.where(valid[:, None], children, parents)


def unmeasured(context: Context, options: PredictOptions | None = None) -> Pool:
    """Candidates of which the first ones are chosen if nothing is measured, the best first.

    The search for them is short.  If the model corrects a simpler one (:class:`Correcting`), that
    one leads it, and the model orders what was found.  Paper: Pruner (ASPLOS 2025), whose draft
    model is a formula, too.  A search led by trees finds programs about which they are most wrong:
    of one of five networks, slower ones than the analytic model's by a quarter.
    """
    chosen, model = options or PredictOptions(), context.model
    draft = model.corrected if isinstance(model, Correcting) else None
    search = Evolution(
        scouts=chosen.sketches,
        population=chosen.population,
        generations=chosen.generations,
        survivors=chosen.survivors,
        doubt=0.0 if draft is None else Evolution.doubt,
    )
    if draft is None or not isinstance(model, Correcting):
        return search.ask(context, chosen.answers)
    found = search.ask(replace(context, model=draft), chosen.drafts)
    return Pool(tuple(scored_again(found.best, context.task, model.alone())))


def genes(space: Space) -> list[list[int]]:
    """Groups of columns that are inherited together: those of one stage (the paper's node).

    The columns of one split stay together, even if another stage follows only some of them.  If
    there is only one such group, each decision is a gene.
    """
    owner: dict[str, str] = {}
    for stage in space.state.stages:
        for column in _columns(stage):
            owner.setdefault(column, stage.name)
    grouped: dict[str, list[int]] = {}
    for decision in space.decisions:
        cut = space.slices[decision.name]
        stage_name = owner.get(decision.columns[0], decision.name)
        grouped.setdefault(stage_name, []).extend(range(cut.start, cut.stop))
    if len(grouped) > 1:
        return list(grouped.values())
    return [list(range(cut.start, cut.stop)) for cut in space.slices.values()]


def _columns(stage: Stage) -> list[str]:
    """Columns that the loops and annotations of *stage* refer to."""
    counts = [mark.count for mark in (stage.parallel, stage.vectorize) if mark is not None]
    splits = [f for r in stage.relations if isinstance(r, SplitRelation) for f in r.factors]
    products = [*splits, *counts, stage.max_unroll]
    return [column for product in products for column in open_columns(product)]


def crossover(space: Space, one: Table, other: Table, rng: np.random.Generator) -> Table:
    """Rows that take each gene from either parent with equal chance."""
    child = one.copy()
    for columns in genes(space):
        taken = np.flatnonzero(rng.random(len(one)) < 0.5)[:, None]
        child[taken, columns] = other[taken, columns]
    return child


def _best_scores(groups: Iterable[Scored]) -> dict[Pair, float]:
    """The best score of each pair that has candidates."""
    best: dict[Pair, float] = {}
    for group in groups:
        if len(group):
            pair = group.sketch.pair
            best[pair] = max(best.get(pair, -np.inf), float(group.scores.max()))
    return best


def _reaching(
    sketches: Iterable[PlacedSketch], rows: int, context: Context, pairs: Allocation
) -> list[Scored]:
    """*rows* scored rows of each sketch whose definition may reach the best score so far."""
    found: list[Scored] = []
    best = 0.0
    for sketch in sorted(sketches, key=lambda s: pairs.bound_s(s.pair)):
        if best * pairs.bound_s(sketch.pair) > 1:
            continue
        sampled = sample_valid(sketch, rows, context.rng)
        found.append(score(context.task, context.model, sketch, sampled))
        best = max(best, float(found[-1].scores.max(initial=0.0)))
    return found


def _sketches(groups: Sequence[Scored]) -> list[PlacedSketch]:
    return list({g.sketch.key: g.sketch for g in groups}.values())
