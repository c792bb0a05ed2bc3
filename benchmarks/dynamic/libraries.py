"""Libraries for a whole range of sizes and for one size each, compiled once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import ValidationError

import ansorpy as ap
from ansorpy.errors import ForeignFile
from ansorpy.measure.records.database import Database
from benchmarks.common.compared import code_version
from benchmarks.dynamic.result import Library
from benchmarks.dynamic.suite import DynamicModel, cache_pairs
from benchmarks.networks.measure import Tuned
from benchmarks.networks.result import path_of

__all__ = ["LibrarySettings", "any_size_library", "one_size_library"]


@dataclass(frozen=True)
class LibrarySettings:
    """How libraries are compiled, and where files are kept: one folder for each model and limit.

    Libraries of other code lie in other folders.
    """

    folder: Path
    threads: int
    tuned: Tuned
    seed: int = 0

    def place(self, model: DynamicModel) -> Path:
        result = path_of(self.folder, model.name, self.threads, self.tuned.text, self.seed)
        return result.with_suffix(f".{code_version()}")

    def network(self, model: DynamicModel) -> Path:
        """The network's ONNX file."""
        return model.file(self.seed, self.folder)


def any_size_library(model: DynamicModel, settings: LibrarySettings) -> Library:
    """The library for all sizes, tuned within the limits of *settings*."""
    tuned = settings.tuned
    limits = {
        "effort": tuned.effort, "trials_per_task": tuned.trials_per_task,
        "time_limit": tuned.time_limit_s,
    }  # fmt: skip
    return _kept(model, None, {model.dim: (model.low, model.high)}, limits, settings)


def one_size_library(
    model: DynamicModel, size: int, trials: int, settings: LibrarySettings
) -> Library:
    """The library for one *size*, tuned with as many *trials* as that for all sizes had."""
    limits = {"trials": trials} if trials else {"effort": "none"}
    return _kept(model, size, {model.dim: size}, limits, settings)


def _kept(
    model: DynamicModel, size: int | None, dims: Mapping[str, Any], limits: Mapping[str, Any],
    settings: LibrarySettings,
) -> Library:  # fmt: skip
    """Read what an earlier run compiled, or compile and export it.

    Each library has records of its own, so none is tuned from those of another, and begins without
    any, so its tuning took as long as it says.
    """
    place = settings.place(model) / ("any" if size is None else str(size))
    record, library = place / "library.json", place / f"{model.name}.so"
    if record.exists() and library.exists():
        try:
            return Library.model_validate_json(record.read_text())
        except ValidationError as error:
            raise ForeignFile(f"{record} describes no library: {error}") from None
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob("tune.db*"):  # by a run that was stopped
        left.unlink()
    db, network, start = place / "tune.db", settings.network(model), monotonic()
    alias = {present: past for past, present in cache_pairs(network).items()}
    made = ap.compile(
        network, dims=dims, alias=alias, db=db,
        threads=settings.threads, seed=settings.seed, **limits,
    )  # fmt: skip
    tuning_s = monotonic() - start
    made.export(library)
    with Database(db) as database:
        trials = sum(database.trials(task.key) for task in database.tasks())
    found = Library(
        file=str(library), size=size, tuning_s=tuning_s, trials=trials,
        bytes=library.stat().st_size,
    )  # fmt: skip
    found.write(record)
    return found
