"""The random forest: a learned model that knows how uncertain its scores are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.learner import SampleLearner, TreeOptions, statement_rows
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task

if TYPE_CHECKING:
    from lightgbm import Booster

__all__ = ["ForestOptions", "RandomForest"]


@dataclass(frozen=True)
class ForestOptions(TreeOptions):
    """Options for growing the trees.

    Source: AdaTune's surrogate, scikit-learn's forest of 10 trees with at most 10 features a split.
    """

    trees: int = 10
    leaves: int = 63
    row_fraction: float = 0.632
    """The share of distinct rows in a bootstrap sample."""
    features_per_split: int = 10
    doubt: float = 0.5
    """Standard deviation of a score's logarithm before there are trees."""
    slowest: float = 0.01
    """Throughput, relative to the task's best, of failures and of everything slower."""

    def parameters(self, features: int) -> dict[str, Any]:
        """LightGBM's parameters for rows of *features* that vary: it draws splits from these."""
        return self.common_parameters(threads=1) | {
            "boosting": "rf",
            "objective": "regression",
            "feature_fraction_bynode": min(1.0, self.features_per_split / max(features, 1)),
        }


class RandomForest(SampleLearner):
    """Corrects the analytic model by the mean of a random forest; its trees' spread is the doubt.

    Each tree predicts the logarithm of the factor by which the analytic throughput is wrong, from
    the program's features (:func:`program_features`).  A score is the analytic throughput times the
    exponential of the trees' mean, and its deviation the score times their standard deviation.

    Paper: AdaTune (Li et al., NeurIPS 2020).  Source: github limenghao/AdaTune.  Differs: starts
    from the analytic model, so scores are programs per second and the first rounds are not random;
    AdaTune predicts throughput.  One forest learns all tasks; AdaTune has one for each.  LightGBM
    grows the trees, each on a share of the rows without repetition.
    """

    def __init__(self, options: ForestOptions | None = None) -> None:
        super().__init__()
        self.options = options or ForestOptions()
        self._forest: Booster | None = None
        self._trained_on = 0

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Programs per second; only the order within a task is learned."""
        score, _ = self._estimate(task, programs)
        return score

    def deviations(self, task: Task, programs: Programs) -> Floats:
        """Standard deviation of each score over the trees."""
        score, spread = self._estimate(task, programs)
        return score * spread

    def _estimate(self, task: Task, programs: Programs) -> tuple[Floats, Floats]:
        """Scores, and the standard deviations of their logarithms."""
        views = view_nest(programs.nest, len(programs))
        if self._forest is None:
            score: Floats = 1.0 / self.prior.seconds(task, views)
            return score, np.full(len(score), self.options.doubt)
        prior_s, rows = statement_rows(task, views)
        score, features = 1.0 / prior_s, program_features(rows)
        logarithms = np.stack([
            np.asarray(self._forest.predict(features, start_iteration=tree, num_iteration=1,
                                            num_threads=1))
            for tree in range(self._forest.num_trees())
        ])  # fmt: skip
        return score * np.exp(logarithms.mean(axis=0)), logarithms.std(axis=0)

    def refit(self) -> None:
        """Grow a new forest on all programs learned so far, if there are enough new ones."""
        programs, options = len(self.data), self.options
        grew = self.data.grew(self._trained_on, options.refit_share, options.refit_least)
        if programs < max(options.min_programs, 1) or not grew:
            return
        self._trained_on = programs
        import lightgbm

        tasks = self.data.tasks.values()
        matrix = np.stack([program_features(f) for samples in tasks for f in samples.features])
        wrong = [np.log(np.maximum(s.labels, options.slowest)) - s.prior for s in tasks]
        parameters = options.parameters(int((matrix != matrix[0]).any(axis=0).sum()))
        rows = lightgbm.Dataset(matrix, label=np.concatenate(wrong))
        self._forest = lightgbm.train(parameters, rows, num_boost_round=options.trees)


def program_features(features: Floats) -> Floats:
    """The totals over the statements of ``features[..., statements, width]``: one row a program.

    Features are ``log2(1 + x)``; the total is ``log2(1 + sum of x)``.
    """
    total: Floats = np.log2(1 + np.expm1(features * np.log(2)).sum(axis=-2))
    return total
