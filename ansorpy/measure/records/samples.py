"""Training samples of cost models, stored with the trials so that schedules are not replayed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.ir.task import Task
from ansorpy.measure.records.results import BELIEVED
from ansorpy.measure.records.rows import NOW, Position
from ansorpy.measure.records.schema import Store, plain_errors, transaction
from ansorpy.measure.result import TrialKind

__all__ = ["SampleStore", "Sampled", "Samples"]


_STORED = np.dtype("<f4")
_NO_LIMIT = 1 << 31

_EVENLY = f"""
SELECT kind, median_s, prior_s, CAST(features AS BLOB) AS features FROM (
    SELECT trials.id AS id, kind, median_s, prior_s, features,
        row_number() OVER (ORDER BY trials.id) AS nth, COUNT(*) OVER () AS total
    FROM samples JOIN trials ON trials.id = samples.trial
        JOIN results ON results.id =
            (SELECT max(results.id) FROM results
             WHERE trial = trials.id AND results.id <= ? AND {BELIEVED})
    WHERE task_key = ? AND version = ? AND samples.id <= ?
) WHERE nth * ? / total > (nth - 1) * ? / total ORDER BY id
"""
"""Selects a given number of samples of a task and version, evenly spaced over all of them."""

_PUT = """
INSERT INTO samples (trial, version, prior_s, features) VALUES (?, ?, ?, ?)
ON CONFLICT (trial) DO UPDATE SET
    version = excluded.version, prior_s = excluded.prior_s, features = excluded.features
    WHERE version != excluded.version
"""
"""An updated sample keeps its number, from which a run determines whether it existed before it."""

_TIMED = (TrialKind.OK.value, TrialKind.SLOW.value)


@dataclass(frozen=True)
class Samples:
    """Measured programs of one task.

    Args:
        version: Version of the features; samples of different versions do not mix.
        features: ``[statements, width]`` of each program.
        prior_s: Estimate of an analytic model for each.
        seconds: Measured times; infinite for failures.
    """

    version: str
    features: Sequence[Floats]
    prior_s: Floats
    seconds: Floats

    def __len__(self) -> int:
        return len(self.prior_s)

    def rows(self, chosen: Sequence[int]) -> Samples:
        """The programs with these indices."""
        at = np.asarray(chosen, dtype=np.intp)
        features = [self.features[n] for n in chosen]
        return Samples(self.version, features, self.prior_s[at], self.seconds[at])


@dataclass(frozen=True)
class Sampled:
    """A recorded task: its key, its class (tasks that differ only in shapes), and sample count."""

    key: str
    class_key: str
    samples: int


class SampleStore(Store):
    """The samples in a tuning database, one per trial; times are read from the results."""

    def put(self, trials: Iterable[int], samples: Samples) -> None:
        """Store *samples* of the finished trials with these numbers, in one transaction."""
        rows = [
            (trial, samples.version, float(prior_s), features.astype(_STORED).tobytes())
            for trial, prior_s, features in zip(
                trials, samples.prior_s, samples.features, strict=True
            )
        ]
        with transaction(self._connection, self.path), plain_errors(self.path):
            self._connection.executemany(_PUT, rows)

    def known(self, task_key: str, version: str, at: Position = NOW) -> set[int]:
        """Numbers of a task's trials that have a sample of this *version*."""
        rows = self._rows(
            "SELECT trial FROM samples JOIN trials ON trials.id = trial"
            " WHERE task_key = ? AND version = ? AND samples.id <= ?",
            task_key, version, at.samples,
        )  # fmt: skip
        return {int(row["trial"]) for row in rows}

    def of(
        self,
        task_keys: Iterable[str],
        version: str,
        width: int,
        most: Mapping[str, int] | None = None,
        at: Position = NOW,
    ) -> dict[str, Samples]:
        """Return the samples of these tasks, by key and in the order of their trials.

        *most* limits the number of samples of a task; those chosen are evenly spaced over its
        trials.  Samples of another version and damaged ones are left out.
        """
        found = {}
        for key in task_keys:
            limit = _NO_LIMIT if most is None else most.get(key, _NO_LIMIT)
            rows = self._rows(_EVENLY, at.results, key, version, at.samples, limit, limit)
            samples = _decoded(rows, version, width)
            if len(samples):
                found[key] = samples
        return found

    def tasks_like(self, task: Task, version: str, at: Position = NOW) -> list[Sampled]:
        """The tasks with samples of *version*, recorded for *task*'s machine and thread count."""
        rows = self._rows(
            "SELECT tasks.key, class_key, COUNT(*) AS samples FROM tasks"
            " JOIN trials ON task_key = tasks.key JOIN samples ON trial = trials.id"
            " WHERE version = ? AND samples.id <= ? AND threads = ? AND target ="
            " (SELECT target FROM tasks WHERE key = ?) GROUP BY tasks.key ORDER BY tasks.key",
            version, at.samples, task.threads, task.key,
        )  # fmt: skip
        return [Sampled(r["key"], r["class_key"], r["samples"]) for r in rows]


def _decoded(rows: Iterable[sqlite3.Row], version: str, width: int) -> Samples:
    features, prior_s, seconds = [], [], []
    for row in rows:
        values = _features(row["features"], width)
        if values is None or not _is_time(row["prior_s"]):
            continue
        timed = row["kind"] in _TIMED and _is_time(row["median_s"])
        features.append(values)
        prior_s.append(float(row["prior_s"]))
        seconds.append(float(row["median_s"]) if timed else float("inf"))
    return Samples(version, features, np.array(prior_s), np.array(seconds))


def _features(blob: object, width: int) -> Floats | None:
    """Decode features; None if *blob* does not hold whole statements of finite numbers."""
    if not isinstance(blob, bytes) or not blob or len(blob) % (width * _STORED.itemsize):
        return None
    values = np.frombuffer(blob, _STORED).reshape(-1, width).astype(np.float64)
    return values if np.isfinite(values).all() else None


def _is_time(value: object) -> bool:
    return isinstance(value, float) and 0 < value < float("inf")
