"""Searches of ten networks, each recorded twice and replayed from its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

import ansorpy as ap
from benchmarks.zoo import WRITTEN
from benchmarks.zoo.light import light_model
from tests.campaigns.campaign import Campaign, Tally

__all__ = ["REPLAY"]

_LIGHT = ("squeezenet", "shufflenet", "inception_v1")
_NETWORKS: dict[str, Callable[[int], onnx.ModelProto]] = {
    **{name: partial(written, 1) for name, written in WRITTEN.items()},
    **{name: partial(light_model, name) for name in _LIGHT},
}
_TIME_LIMIT_S = 20
_TRIALS = 32


def _case(rng: np.random.Generator, number: int) -> Tally:
    """Record two runs of one network, the second with what the first found, and replay both.

    The time limit ends the first run wherever it is; the second one ends after some more trials.

    Raises:
        VerificationFailed: A run differs; the message has the event as recorded and as replayed.
    """
    name = list(_NETWORKS)[number % len(_NETWORKS)]
    seed = int(rng.integers(1 << 16))
    model = _NETWORKS[name](seed)
    tally = Tally(Counter([name]))
    with TemporaryDirectory() as folder:
        database = Path(folder, "tune.db")
        ap.compile(model, db=database, seed=seed, time_limit=_TIME_LIMIT_S)
        measured = _replayed(database, 1, tally)
        ap.compile(model, db=database, seed=seed + 1, trials=measured + _TRIALS)
        _replayed(database, 2, tally)
    return tally


def _replayed(database: Path, run: int, tally: Tally) -> int:
    """Replay *run*, count its events and trials, and return the number of trials."""
    trials = 0
    for again in ap.replay(database, run):
        again.demand()
        trials += again.trials
        tally.kinds.update(events=again.events, trials=again.trials)
    return trials


REPLAY = Campaign(
    "records searches of a network, and replays them event by event",
    _case,
    size=len(_NETWORKS),
    short=0,  # make test replays searches of single operators: tests/tasks/test_replay.py
    limit_s=900.0,
)
