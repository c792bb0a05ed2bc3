"""What learned models share: training samples of programs, stored with their trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.cpu.model import TERMS
from ansorpy.cost.analytic.model import PRIOR_VERSION, AnalyticModel
from ansorpy.cost.dataset import Dataset, TaskSamples
from ansorpy.cost.features import FEATURE_NAMES, FEATURE_VERSION, extract_all
from ansorpy.cost.nest_view import LeafView, view_nest
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

__all__ = [
    "COLUMNS", "SAMPLE_VERSION", "SHARES", "SampleLearner", "TreeOptions", "per_statement",
    "samples_of", "statement_rows", "with_prior",
]  # fmt: skip

COLUMNS = (*FEATURE_NAMES, *(f"share_{term}" for term in TERMS))
"""What learned models see of a statement: Ansor's features, and which share of its time each term
of the analytic model would take alone, which is what trees correct it by."""

SHARES = slice(len(FEATURE_NAMES), len(COLUMNS))
"""The columns of these shares."""

SAMPLE_VERSION = f"{FEATURE_VERSION}-{PRIOR_VERSION}"
"""Version of the training samples: the features, and the analytic estimate that models correct."""


@dataclass(frozen=True)
class TreeOptions:
    """Options for growing trees with LightGBM.

    Args:
        leaves: Most leaves of a tree.
        row_fraction: Share of rows sampled for each tree.
        min_programs: With fewer programs, nothing is trained.
        refit_share: Retrain when new programs are at least this share of those of the run's own
            tasks ...
        refit_least: ... and this share of all programs (:meth:`Dataset.grew`).
    """

    trees: int
    leaves: int
    row_fraction: float
    min_rows_in_leaf: int = 2
    min_programs: int = 8
    refit_share: float = 0.05
    refit_least: float = 0.02
    seed: int = 43

    def common_parameters(self, threads: int) -> dict[str, Any]:
        """LightGBM's parameters, chosen so that equal data give equal trees."""
        return {
            "num_leaves": self.leaves,
            "bagging_fraction": self.row_fraction,
            "bagging_freq": 1,
            "min_data_in_leaf": self.min_rows_in_leaf,
            "min_sum_hessian_in_leaf": 1e-3,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": threads,
            "seed": self.seed,
            "verbosity": -1,
        }


class SampleLearner:
    """Collects the features and the analytic estimates of measured programs, to train on.

    ``data`` holds all programs, those of other tasks and of earlier runs included.
    """

    def __init__(self) -> None:
        self.prior = AnalyticModel()
        self.data = Dataset()

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples:
        """Remember measured programs of *task*; infinite seconds mean that one failed."""
        samples = samples_of(task, programs, seconds)
        self.take(task.key, samples)
        return samples

    def take(self, task_key: str, samples: Samples | TaskSamples) -> None:
        """Remember samples of programs measured in this run, as a later run recalls them.

        Features are rounded to float32, as they are stored: otherwise trees could tell this run's
        programs from recalled ones.
        """
        stored = [part.astype(np.float32).astype(np.float64) for part in samples.features]
        self.data.add(task_key, stored, samples.prior_s, samples.seconds)

    @property
    def remembers(self) -> tuple[str, int]:
        """Version of the samples and width of their features."""
        return SAMPLE_VERSION, len(COLUMNS)

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        """Remember programs measured in earlier runs, by task key; training uses them."""
        self.data.recall(earlier)


def samples_of(task: Task, programs: Programs, seconds: Floats) -> Samples:
    """The training samples of measured programs: their rows and analytic estimates."""
    views = view_nest(programs.nest, len(programs))
    prior_s, rows = statement_rows(task, views)
    return Samples(SAMPLE_VERSION, list(rows), prior_s, seconds)


def statement_rows(task: Task, views: Sequence[LeafView]) -> tuple[Floats, Floats]:
    """The analytic estimate of each program in seconds, and the rows of its statements.

    The rows are ``[programs, statements, len(COLUMNS)]``.
    """
    prior_s, rows = with_prior(task, views)
    parts = zip(views, per_statement(rows, views), strict=True)
    return prior_s, np.stack([view.spread(part) for view, part in parts], axis=1)


def with_prior(task: Task, views: Sequence[LeafView]) -> tuple[Floats, Floats]:
    """The analytic estimate of each candidate in seconds, and the rows of all statements.

    The rows are those of one statement's settings after the other, ``[sum of n, len(COLUMNS)]``.
    Values are ``log2(1 + x)``.
    """
    prior_s, shares = AnalyticModel().explained(task, views)
    features = extract_all(views)
    terms = np.zeros((len(features), len(TERMS)), order="F")
    if shares:
        parts = zip(views, shares, strict=True)
        np.concatenate([np.broadcast_to(s, (v.rows, s.shape[1])) for v, s in parts], out=terms)
    return prior_s, np.concatenate([features, np.log2(1 + terms)], axis=1)


def per_statement(values: Floats, views: Sequence[LeafView]) -> list[Floats]:
    """Split the concatenated *values* of all statements into one array per statement."""
    return np.split(values, np.cumsum([view.rows for view in views])[:-1])
