"""What cost models learn from, kept beside the trials: no later run has to replay a schedule."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ansorpy.ir.task import Task
from ansorpy.measure.result import TrialKind
from ansorpy.measure.schema import plain_errors, transaction

__all__ = ["SampleStore", "Sampled", "Samples"]

Floats = npt.NDArray[np.float64]

_STORED = np.dtype("<f4")
_NO_LIMIT = 1 << 31

_EVENLY = """
SELECT kind, median_s, prior_s, CAST(features AS BLOB) AS features FROM (
    SELECT trials.id AS id, kind, median_s, prior_s, features,
        row_number() OVER (ORDER BY trials.id) AS nth, COUNT(*) OVER () AS total
    FROM samples JOIN trials ON trials.id = trial WHERE task_key = ? AND version = ?
) WHERE nth * ? / total > (nth - 1) * ? / total ORDER BY id
"""
"""Samples of a task and a version; of their numbers those where a share of them is full."""

_TIMED = (TrialKind.OK.value, TrialKind.SLOW.value)


@dataclass(frozen=True)
class Samples:
    """Measured programs of one task.

    Args:
        version: What the features are; those of two versions do not mix.
        features: ``[statements, width]`` of each program.
        prior_s: What a closed-form model estimated for each.
        seconds: What was measured; infinite for failures.
    """

    version: str
    features: Sequence[Floats]
    prior_s: Floats
    seconds: Floats

    def __len__(self) -> int:
        return len(self.prior_s)

    def rows(self, chosen: Sequence[int]) -> Samples:
        """The programs with these numbers."""
        at = np.asarray(chosen, dtype=np.intp)
        features = [self.features[n] for n in chosen]
        return Samples(self.version, features, self.prior_s[at], self.seconds[at])


@dataclass(frozen=True)
class Sampled:
    """A recorded task: its key, its class (tasks that differ in shapes only), its samples."""

    key: str
    class_key: str
    samples: int


class SampleStore:
    """The samples in a tuning database, one a trial; times come from the trials themselves."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def put(self, trials: Iterable[int], samples: Samples) -> None:
        """Keep *samples* for the finished trials with these numbers, in one transaction."""
        rows = [
            (trial, samples.version, float(prior_s), features.astype(_STORED).tobytes())
            for trial, prior_s, features in zip(
                trials, samples.prior_s, samples.features, strict=True
            )
        ]
        with transaction(self._connection, self._path), plain_errors(self._path):
            self._connection.executemany("INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?)", rows)

    def known(self, task_key: str, version: str) -> set[int]:
        """Numbers of a task's trials that have a sample of this *version*."""
        with plain_errors(self._path):
            rows = self._connection.execute(
                "SELECT trial FROM samples JOIN trials ON trials.id = trial"
                " WHERE task_key = ? AND version = ?",
                (task_key, version),
            )
            return {int(row["trial"]) for row in rows}

    def of(
        self,
        task_keys: Iterable[str],
        version: str,
        width: int,
        most: Mapping[str, int] | None = None,
    ) -> dict[str, Samples]:
        """The samples of these tasks, by key and in the order of their trials.

        Of a task that *most* names so many, from its first trial to its last at even steps.
        Those of another version are left out, and so are damaged ones.
        """
        found = {}
        for key in task_keys:
            limit = _NO_LIMIT if most is None else most.get(key, _NO_LIMIT)
            with plain_errors(self._path):
                rows = self._connection.execute(_EVENLY, (key, version, limit, limit)).fetchall()
            samples = _decoded(rows, version, width)
            if len(samples):
                found[key] = samples
        return found

    def tasks_like(self, task: Task, version: str) -> list[Sampled]:
        """The tasks with samples of this *version*, recorded for the machine and the number of
        threads of *task*."""
        with plain_errors(self._path):
            rows = self._connection.execute(
                "SELECT tasks.key, class_key, COUNT(*) AS samples FROM tasks"
                " JOIN trials ON task_key = tasks.key JOIN samples ON trial = trials.id"
                " WHERE version = ? AND threads = ? AND target ="
                " (SELECT target FROM tasks WHERE key = ?) GROUP BY tasks.key ORDER BY tasks.key",
                (version, task.threads, task.key),
            )
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
    """The features in *blob*; None when it does not hold whole statements of finite numbers."""
    if not isinstance(blob, bytes) or not blob or len(blob) % (width * _STORED.itemsize):
        return None
    values = np.frombuffer(blob, _STORED).reshape(-1, width).astype(np.float64)
    return values if np.isfinite(values).all() else None


def _is_time(value: object) -> bool:
    return isinstance(value, float) and 0 < value < float("inf")
