"""Time programs while a second tuner runs: ``python -m benchmarks.two_tuners``.

Six programs of one matrix product are timed repeatedly: alone, while another process tunes on the
same cores, and while another process tunes with its locks in another folder, so that neither waits
for the other.  The three ways alternate, so that all run at the same clock.  For each, the table
has the share of single times that differ by more than 5 % from the program's median alone, the
worst single time, and the worst median.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

import ansorpy as ap
from ansorpy.cli.exit_codes import exit_code
from ansorpy.evaluation.tables import Table
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from ansorpy.target import Target
from benchmarks.common.command import command_line
from benchmarks.common.pages import publish
from benchmarks.ops.families.matmul import Matmul

__all__ = ["WAYS", "disturbance", "main"]

Times = npt.NDArray[np.float64]

WAYS = ("alone", "beside a tuner", "beside one that does not wait")

_OFF = 0.05


def _product(size: int) -> Matmul:
    return Matmul("GMM", size, size, size)


def fastest(task: Task, runner: LocalRunner, programs: int, trials: int) -> list[State]:
    """The best programs of a short search."""
    model = ap.PARTS["cost_model"].one("boosted")
    with TemporaryDirectory() as folder, Database(Path(folder) / "tune.db") as database:
        measured = MeasuredTrials(runner, database)
        search = TaskSearch(task, SketchSampler(task), model, measured, SearchOptions())
        while search.history.trials < trials and not search.exhausted:
            search.step(8)
    return [best.state for best in search.history.finalists[:programs]]


@contextmanager
def tuner(database: Path, size: int, threads: int, locks: Path | None) -> Iterator[None]:
    """Run a tuner in another process, with its locks in the usual folder or in *locks*."""
    environment = os.environ | ({} if locks is None else {"TMPDIR": str(locks)})
    command = [sys.executable, "-m", "benchmarks.two_tuners", "--tune", str(database)]
    process = subprocess.Popen(
        [*command, "--size", str(size), "--threads", str(threads)], env=environment,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the other tuner ended too early: {process.returncode}")
    finally:
        process.kill()
        process.wait()


def timed(task: Task, states: Sequence[State], runner: LocalRunner, rounds: int) -> list[Times]:
    """Single times of each of *states*, over all rounds."""
    found: list[list[float]] = [[] for _ in states]
    for _ in range(rounds):
        for kept, result in zip(found, runner.measure(task, states, incumbent_s=None), strict=True):
            kept += result.seconds
    return [np.array(kept) for kept in found]


def disturbance(alone: Sequence[Times], times: Sequence[Times]) -> tuple[float, float, float]:
    """Compare the programs' single *times* with the medians *alone*: the share that is off by more
    than 5 %, the largest factor, and the largest relative difference of a program's medians."""
    usual = [float(np.median(t)) for t in alone]
    ratios = np.concatenate([t / m for t, m in zip(times, usual, strict=True)])
    off = float((np.abs(ratios - 1) > _OFF).mean())
    medians = [abs(float(np.median(t)) / m - 1) for t, m in zip(times, usual, strict=True)]
    return off, float(ratios.max()), max(medians)


def compared(size: int, threads: int, turns: int, rounds: int) -> Mapping[str, list[Times]]:
    """Single times of each program in each way; the ways alternate."""
    task = Task(_product(size).dag, Target.host(), threads, name=f"matmul {size}")
    found: dict[str, list[list[Times]]] = {way: [] for way in WAYS}
    with TemporaryDirectory() as folder, LocalRunner(MeasureOptions()) as runner:
        database, locks = Path(folder) / "tuner.db", Path(folder) / "locks"
        locks.mkdir()
        states = fastest(task, runner, 6, 32)
        for _ in range(turns):
            found[WAYS[0]].append(timed(task, states, runner, rounds))
            for way, where in zip(WAYS[1:], (None, locks), strict=True):
                with tuner(database, size, threads, where):
                    # The first round includes seconds of the tuner's imports.
                    timed(task, states, runner, rounds)
                    found[way].append(timed(task, states, runner, rounds))
        with Database(database) as records:
            print(f"the other tuner recorded {sum(records.trials(r.key) for r in records.tasks())}")
    return {way: [np.concatenate(t) for t in zip(*r, strict=True)] for way, r in found.items()}


def tune_for_ever(database: Path, size: int, threads: int) -> None:
    """Tune one matrix product after another until this process is killed."""
    for step in range(1, 1000):
        ap.tune(_product(size + 8 * step).tensors(), trials=64, threads=threads, db=database)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = command_line("two_tuners", __doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each way in a turn")
    parser.add_argument("--into", type=Path, metavar="FILE", help="replace the table in a document")
    parser.add_argument("--tune", type=Path, metavar="DB", help="run as the other tuner")
    options = parser.parse_args(arguments)
    if options.tune is not None:
        tune_for_ever(options.tune, options.size, options.threads)
        return 0
    return exit_code(partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    """Run the comparison and print its table."""
    found = compared(options.size, options.threads, options.turns, options.rounds)
    alone = found[WAYS[0]]
    rows = []
    for way, times in found.items():
        off, worst, median = disturbance(alone, times)
        single = sum(map(len, times))
        rows.append((way, f"{single:,}", f"{off:.1%}", f"{worst:.2f}", f"{median:.1%}"))
    heading = ("", "single times", "off by over 5 %", "worst, times", "medians off by up to")
    table = Table("", heading, tuple(rows), frozenset(heading[1:]))
    publish([table], "benchmarks.two_tuners", options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
