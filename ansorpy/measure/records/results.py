"""Results of trials: their rows, their signatures, and which of them count.

A signature covers a whole trial: task, definition, steps (by their digests, which are checked when
they are read), outcome, times and object code (by its digest, likewise), and the result's number,
since a trial's last result counts.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from ansorpy.errors import UsageError
from ansorpy.measure.records.signing import Part, is_signed, is_signed_by, own_key, sign
from ansorpy.measure.result import MeasureResult, TrialKind

__all__ = [
    "BELIEVED",
    "LAST",
    "RECORDS",
    "SIGNED",
    "Believe",
    "is_started",
    "key_for",
    "register",
    "signed_row",
    "start_signature",
]

_SUBJECT = "result"
_KEPT = 1 << 13
"""Results that are checked once: each takes a few KB of memory."""
_SIGNED = (
    "task_key", "definition", "digest", "kind", "seconds", "scale", "median_s", "max_error",
    "object_digest",
)  # fmt: skip


class Believe(Enum):
    """Which results of a database count as results.

    ``OWN``: those that this user signed, for everything that uses programs or their times.
    ``ALL``: every result, for what only reports or replays them.
    """

    OWN = "own"
    ALL = "all"


def _raw(column: str) -> str:
    # A text that is not valid UTF-8 must reach the validation of its row.
    return f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


_ARGUMENTS = f"({', '.join(map(_raw, ('results.signature', 'results.id', *_SIGNED)))})"
BELIEVED = f" (kind != '{TrialKind.CHECKED.value}' AND believed{_ARGUMENTS}) "
"""Condition in SQL on a result and its trial, both joined, that the result counts."""

SIGNED = f" signed{_ARGUMENTS} "
"""Condition in SQL that this user signed a result."""

LAST = f""" results.id = (SELECT max(results.id) FROM results
    WHERE trial = trials.id AND results.id <= ? AND {BELIEVED}) """
"""Selects each trial's last result that counts among those up to a given number."""

RECORDS = """
SELECT trials.id, task_key, definition, digest, steps, attempts, started_at,
    results.id AS number, results.session, kind, reason, seconds, scale, median_s, spread, build_s,
    run_s, max_error, object_digest, load, finished_at
FROM trials JOIN results ON trial = trials.id
"""
"""Selects the columns of :class:`.Record`."""


def key_for(believe: Believe) -> bytes | None:
    """This user's key; None if others can read it, where other results count, too.

    Raises:
        UsageError: Others can read the key.
    """
    try:
        return own_key()
    except UsageError:
        if believe is Believe.OWN:
            raise
        return None


def register(connection: sqlite3.Connection, believe: Believe, key: bytes | None) -> None:
    """Define :data:`BELIEVED` and :data:`SIGNED` by the owner of *key* on *connection*."""

    @lru_cache(maxsize=_KEPT)
    def signed(signature: Part, *parts: Part) -> bool:
        return key is not None and is_signed_by(key, signature, _SUBJECT, *parts)

    believed: Callable[..., bool] = signed if believe is Believe.OWN else lambda *_: True
    connection.create_function("signed", -1, signed)
    connection.create_function("believed", -1, believed)


def start_signature(trial: tuple[str, str, str], attempts: int) -> str:
    """The signature of having started *trial* so often."""
    return sign("start", *trial, attempts)


def is_started(trial: tuple[str, str, str], attempts: int, signature: str) -> bool:
    """Whether *signature* is this user's :func:`start_signature`."""
    return is_signed(signature, "start", *trial, attempts)


def signed_row(
    number: int, trial: tuple[str, str, str], result: MeasureResult, scale: float | None
) -> dict[str, Part]:
    """The columns of result *number*, of *trial*: its task, definition and digest of steps."""
    counted = result if scale is None else result.scaled(scale)
    columns: dict[str, Part] = {
        "id": number, "kind": result.kind.value, "reason": result.reason,
        "seconds": json.dumps(result.seconds), "scale": scale,
        "median_s": counted.median_s if result.seconds else None, "spread": result.spread,
        "build_s": result.build_s, "run_s": result.run_s,
        "max_error": -1.0 if result.max_error == math.inf else result.max_error,
        "object_digest": result.object_digest, "load": os.getloadavg()[0],
        "finished_at": time.time(),
    }  # fmt: skip
    signed = (columns[column] for column in _SIGNED[len(trial) :])
    return columns | {"signature": sign(_SUBJECT, number, *trial, *signed)}
