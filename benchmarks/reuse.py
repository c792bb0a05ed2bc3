"""Measure how much records of similar tasks speed up tuning: ``python -m benchmarks.reuse``.

Tunes some layers, then layers of the same structure with other shapes, each twice: with the records
of the first layers and without.  Prints the speed reached after the first trials, relative to the
best of both runs.  On a quiet machine it takes about five minutes.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ansorpy.config import default_threads
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.events import Phase, Progress
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from benchmarks.ops.families.conv_layer import ConvLayer

__all__ = ["main"]

Layer = tuple[int, int, int, int]
"""Image size, input and output channels, taps."""

FIRST: tuple[Layer, ...] = ((56, 64, 64, 3), (28, 128, 128, 3), (56, 64, 256, 1), (28, 512, 128, 1))
SECOND: tuple[Layer, ...] = (
    (40, 96, 96, 3),
    (14, 256, 256, 3),
    (40, 128, 192, 1),
    (14, 1024, 256, 1),
)
POINTS = (4, 8, 16, 32)


def tuned(layer: Layer, trials: int, database: Path, seed: int) -> list[float]:
    """Best seconds after each trial of a search that uses the records in *database*."""
    size, ci, co, taps = layer
    case = ConvLayer("ConvLayer", (size, size), ci, co, taps, 1, taps // 2)
    task = Task(ComputeDAG.of(case.tensors()), Target.host(), default_threads(), name=case.label)
    best: list[float] = []

    def listen(progress: Progress) -> None:
        if progress.phase is Phase.SEARCHING:
            best.append(progress.best_s or np.inf)

    options = TuneOptions(SearchOptions(seed=seed), round_size=8, retime=False)
    with Database(database) as records, LocalRunner(MeasureOptions(seed=seed)) as runner:
        entry = WeightedTask(task, SketchSampler(task))
        tune_tasks(
            [entry], Budget(trials=trials), runner, database=records, options=options,
            listener=listen,
        )  # fmt: skip
    return best


def compared(
    layer: Layer, trials: int, records: Path, seed: int
) -> tuple[list[float], list[float]]:
    """Best seconds after each trial, with *records* and without."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copy(records, copy)
        return tuned(layer, trials, copy, seed), tuned(layer, trials, Path(folder) / "no.db", seed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--first", type=int, default=64, help="trials of each layer tuned first")
    parser.add_argument("--trials", type=int, default=32, help="trials of each second layer")
    parser.add_argument("--records", type=Path, help="keep the first layers' records here")
    parser.add_argument("--layers", type=int, nargs="*", help="numbers of the second layers")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        records = chosen.records or Path(folder) / "first.db"
        for layer in FIRST:
            tuned(layer, chosen.first, records, chosen.seed)
        numbers = range(len(SECOND)) if chosen.layers is None else chosen.layers
        found = [compared(SECOND[n], chosen.trials, records, chosen.seed) for n in numbers]
    points = [n for n in POINTS if n <= chosen.trials]
    print("layer (size, channels, taps)   " + "".join(f"{n:>6}" for n in points) + "  trials")
    for number, runs in zip(numbers, found, strict=True):
        fastest = min(run[-1] for run in runs)
        for name, run in zip(("with", "without"), runs, strict=True):
            speeds = "".join(f"{fastest / run[n - 1]:6.0%}" for n in points)
            print(f"{SECOND[number]!s:<23} {name:<7} {speeds}")


if __name__ == "__main__":
    main()
