"""The learned cost model: boosted trees on features of statements, summed over each program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.config import default_threads
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.learner import (
    COLUMNS,
    SHARES,
    SampleLearner,
    TreeOptions,
    per_statement,
    with_prior,
)
from ansorpy.cost.nest_view import LeafView, view_nest
from ansorpy.cost.programs import Programs
from ansorpy.cost.ranking import pack_ranking
from ansorpy.cost.trees import plain_trees
from ansorpy.ir.task import Task

if TYPE_CHECKING:
    from lightgbm import Booster

__all__ = ["BoostedOptions", "BoostedTrees", "WeightedTrees"]

_ROWS_A_THREAD = 32768
"""Training uses one more thread for each this many rows.  LightGBM's threads spin while waiting:
next to a busy process, two threads took fifty times as long for 8,000 rows as one thread, which
needs half a second."""

PRIOR_WEIGHT = 3.0
"""Weight of the logarithm of the prior's throughput relative to the trees.  Measured on held-out
records: among 1, 2 and 3, 3 ranks best, and 1 trusts the prior too little."""

_MANY = 20_000
"""What :meth:`BoostedOptions.for_programs` takes for many."""

_FARTHEST = 300.0
"""The largest logarithm that trees change a score by: those of a file may be of any size."""


@dataclass(frozen=True)
class BoostedOptions(TreeOptions):
    """Options for training the trees.

    Source: TenSet's LightGBM model, with fewer and smaller trees: those of 31 leaves score 250
    thousand rows per second on two threads, twice as many as its 72 leaves.  These are for the
    trials of a search, which grows them again and again; see :meth:`for_programs`.
    """

    trees: int = 120
    leaves: int = 31
    row_fraction: float = 0.7
    """Improves results on unseen rows (measured)."""
    learning_rate: float = 0.1
    feature_fraction: float = 0.84375
    trust: float = 0.25
    """Weight of the trees' sum in ranking programs.  Pairs have an order but no distance, so
    training keeps driving distinguishable programs apart, especially when there are few.  The sign
    of a correction therefore means far more than its size.  Measured on held-out records
    (docs/results/search.md).  Searches of recorded spaces that begin with trees from 105,000
    programs take 2.6 trials to 95 % of the best (geometric mean), and 4.4 if the weight is 0.8."""
    alone: float = 0.25
    """The same where nothing is measured, so that nothing will correct the order."""
    sees_shares: bool = False
    """Whether trees may split by the shares of the analytic model's terms."""

    @staticmethod
    def for_programs(programs: int) -> BoostedOptions:
        """Options for training once on so many programs.

        Trees that are grown from many programs of many tasks may see more and count more where they
        are alone.  Measured, as pairs of held-out networks' programs in the right order: by trees
        from 89,000 programs, 0.839 with the options of a search and 0.856 with these; by trees from
        900, 0.823 without and 0.821 with the shares.  In a search of the recorded spaces, trees
        without the shares need 5.7 instead of 7.1 trials to 99 % of the best.  Few large steps make
        that depend on luck: trees as good at ranking led searches to 99 % in 5 to 8 trials.
        """
        if programs < _MANY:
            return BoostedOptions()
        return BoostedOptions(
            trees=320, learning_rate=0.075, min_rows_in_leaf=20, alone=0.8, sees_shares=True
        )

    def parameters(self, rows: int) -> dict[str, Any]:
        """LightGBM's parameters for *rows* rows.

        Small data sets train on one thread, as more threads would cost more than they save.
        """
        threads = min(default_threads(), 1 + rows // _ROWS_A_THREAD)
        return self.common_parameters(threads) | {
            "boosting": "gbdt",
            "learning_rate": self.learning_rate,
            "feature_fraction": self.feature_fraction,
        }


class WeightedTrees(NamedTuple):
    """Trees in LightGBM's text format, and the weight of their sum (``BoostedOptions.trust``)."""

    weight: float
    text: str


@dataclass(frozen=True)
class _Blend:
    """A weighted sum of tree ensembles, with the interface of a Booster; it is always finite."""

    parts: tuple[tuple[float, Booster], ...]

    def predict(self, features: Floats, num_threads: int) -> Floats:
        total: Floats = np.zeros(len(features))
        with np.errstate(over="ignore", invalid="ignore"):
            for weight, booster in self.parts:
                total += weight * np.asarray(booster.predict(features, num_threads=num_threads))
        return np.clip(np.nan_to_num(total), -_FARTHEST, _FARTHEST)


class BoostedTrees(SampleLearner):
    """Learns from this machine's measurements to correct the analytic model.

    A program's score is the analytic throughput times one factor per statement, the exponential
    of the trees' output scaled by ``trust``.  The trees are trained to order each task's programs
    (:func:`~ansorpy.cost.ranking.pack_ranking`), and retrained from scratch on all records.
    Trees of an earlier model (*base*) stay as they are: those trained here learn what the earlier
    ones leave to be ordered.  Measured on three recorded spaces, against a mean of both with the
    same initial weight (1, 2 or 4): at best 11 trials to 99 % of the best instead of 37, at worst
    101 instead of 91.
    Paper: OSDI'20 §5.2.  Differs: starts from the analytic model, so the first rounds are not
    random.  Uses a ranking loss; the paper fits throughput by squared error, which ordered fewer
    held-out programs correctly (docs/results/search.md).
    """

    def __init__(
        self,
        options: BoostedOptions | None = None,
        base: Sequence[WeightedTrees] = (),
        alone: float = BoostedOptions.trust,
    ) -> None:
        super().__init__()
        self.options = options or BoostedOptions()
        self._weight_alone = alone
        self._base = tuple((trees.weight, _read_trees(trees.text)) for trees in base)
        self._booster: _Blend | None = _Blend(self._base) if base else None
        self._trained_on = 0

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Programs per second: the prior's estimate times the trees' correction.

        Only the order within a task is learned, so a task's absolute level may be off.
        """
        [score] = self.predict_all(task, [programs])
        return score

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        """The scores of :meth:`predict` for several sketches, with a single call of the trees."""
        nests = [view_nest(programs.nest, len(programs)) for programs in tables]
        if self._booster is None or not nests:
            return [1.0 / self.prior.seconds(task, views) for views in nests]
        priors, rows = zip(*(with_prior(task, views) for views in nests), strict=True)
        totals = self._corrections(nests, np.concatenate(rows))
        return [self._factor(total) / prior for prior, total in zip(priors, totals, strict=True)]

    def score(self, features: Sequence[Floats], prior_s: Floats) -> Floats:
        """Scores of programs given as stored ``features[statements, width]`` and prior seconds."""
        score: Floats = 1.0 / prior_s
        if self._booster is not None and len(features):
            lengths = np.array([len(part) for part in features])
            rows = self._trees(np.concatenate(features))
            total = np.add.reduceat(rows, np.cumsum(lengths) - lengths)
            score = score * self._factor(total)
        return score

    def _factor(self, total: Floats) -> Floats:
        """The factor by which the trees' weighted sum scales the analytic throughput."""
        factor: Floats = np.exp(np.clip(total / PRIOR_WEIGHT, -_FARTHEST, _FARTHEST))
        return factor

    def _corrections(self, nests: Sequence[Sequence[LeafView]], rows: Floats) -> list[Floats]:
        """The trees' sum over each program's statements, one row per program."""
        views = [view for statements in nests for view in statements]
        parts = iter(per_statement(self._trees(rows), views))
        totals = []
        for statements in nests:
            total: Floats = np.zeros(1)
            for view in statements:
                total = total + view.spread(next(parts))
            totals.append(total)
        return totals

    def _trees(self, features: Floats) -> Floats:
        """The trees' output for each row; unlike in training, all cores help even short calls."""
        assert self._booster is not None
        found: Floats = np.asarray(self._booster.predict(features, num_threads=default_threads()))
        return found

    @property
    def corrected(self) -> AnalyticModel | None:
        """The analytic model, once there are trees."""
        return None if self._booster is None else self.prior

    def alone(self) -> BoostedTrees:
        """A model of the initial trees, if there are any, with the weight that they have alone.

        Trees that were trained here learned what the initial ones leave at their weight in a
        search, so they are no part of it.
        """
        made = BoostedTrees(self.options)
        base = tuple((self._weight_alone, trees) for _, trees in self._base)
        made._booster = _Blend(base) if base else self._booster
        return made

    def refit(self) -> None:
        """Train on all programs learned so far, if there are enough new ones.

        With fewer than ``min_programs`` the prior is used alone.
        """
        programs, options = len(self.data), self.options
        if programs < options.min_programs:
            return
        grew = self.data.grew(self._trained_on, options.refit_share, options.refit_least)
        if self._booster is not None and not grew:
            return
        self._trained_on = programs
        import lightgbm

        training = self.data.training()
        parameters = self.options.parameters(len(training.program))
        parameters["objective"] = pack_ranking(training, self.options.seed)
        share = np.diff(np.append(training.starts, len(training.program)))[training.program]
        start = PRIOR_WEIGHT * training.prior[training.program] / share
        if self._base:
            earlier = _Blend(self._base).predict(training.features, parameters["num_threads"])
            start += earlier / self.options.trust
        if not self.options.sees_shares:
            training.features[:, SHARES] = 0.0  # no tree splits by a constant column
        rows = lightgbm.Dataset(
            training.features, init_score=start, label=np.zeros(len(start)), free_raw_data=True
        )
        grown = lightgbm.train(parameters, rows, num_boost_round=self.options.trees)
        self._booster = _Blend((*self._base, (self.options.trust, grown)))

    def trees(self) -> tuple[WeightedTrees, ...]:
        """All trees, the initial ones first; measured programs are not included."""
        parts = () if self._booster is None else self._booster.parts
        return tuple(
            WeightedTrees(weight, plain_trees(part.model_to_string(), len(COLUMNS)))
            for weight, part in parts
        )


def _read_trees(text: str) -> Booster:
    """The trees in *text*; raises :class:`ForeignFile` if there are none."""
    plain = plain_trees(text, len(COLUMNS))
    import lightgbm

    return lightgbm.Booster(model_str=plain)
