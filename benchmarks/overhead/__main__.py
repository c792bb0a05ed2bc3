"""Measure the overhead of calls and memory: ``python -m benchmarks.overhead``.

Prints three tables, for us and for onnxruntime: calls of networks with three operators and almost
no arithmetic, from Python and from C; loading, the first call, and the resident memory after each;
compiling.  Each figure is the median over several processes, one per measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import default_threads
from ansorpy.evaluation.tables import Table
from benchmarks.common.command import command_line
from benchmarks.common.pages import publish
from benchmarks.overhead.models import NETWORKS, SMALL, model_file

__all__ = ["Bench", "main"]

ENGINES = ("ansorpy", "onnxruntime")
Figures = dict[str, float]
Found = dict[str, dict[str, Figures]]
"""Figures by model and engine."""


@dataclass(frozen=True)
class Bench:
    """The folder of libraries, and the settings with which they are compiled and measured."""

    folder: Path
    threads: int
    effort: str
    repeats: int
    _made: set[str] = field(default_factory=set, init=False, compare=False)
    """Libraries compiled by this run, as others in the folder may be from another version."""

    def given(self, model: str) -> dict[str, Any]:
        """Arguments for a measurement of *model*."""
        library = self.folder / f"{model}_{self.effort}_{self.threads}.so"
        onnx = model_file(model, self.folder)
        return {
            "onnx": str(onnx), "library": str(library), "threads": self.threads,
            "effort": self.effort,
        }  # fmt: skip

    def compiled(self, models: Sequence[str]) -> Found:
        """Compile each model once, as compiling takes the longest and varies little."""
        return {model: {"ansorpy": self._compile(self.given(model))} for model in models}

    def measured(self, what: str, models: Sequence[str]) -> Found:
        """Measure *what* for each model and engine; the engines take turns."""
        found: Found = {}
        for model in models:
            given = self.given(model)
            if given["library"] not in self._made:
                self._compile(given)
            runs = [
                {engine: probe(what, {**given, "engine": engine}) for engine in ENGINES}
                for _ in range(self.repeats)
            ]
            found[model] = {
                engine: {key: median(r[engine][key] for r in runs) for key in runs[0][engine]}
                for engine in ENGINES
            }
        return found

    def _compile(self, given: Mapping[str, Any]) -> Figures:
        self._made.add(given["library"])
        return probe("compiled", given)


def probe(what: str, given: Mapping[str, Any]) -> Figures:
    """Run one measurement in a separate process; return the figures it prints."""
    command = [sys.executable, "-m", "benchmarks.overhead.probe", what, json.dumps(given)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "calls": (
        ("run_us", "run, us", "{:.2f}"), ("into_arrays_us", "into arrays, us", "{:.2f}"),
        ("c_us", "from C, us", "{:.3f}"),
    ),
    "first": (
        ("load_ms", "load, ms", "{:.0f}"), ("first_ms", "first call, ms", "{:.1f}"),
        ("later_ms", "later call, ms", "{:.2f}"), ("loaded_mib", "loaded, MiB", "{:.0f}"),
        ("run_mib", "after a run, MiB", "{:.0f}"), ("rise_mib", "rise, MiB", "{:.1f}"),
    ),
    "compiled": (
        ("compile_s", "compile, s", "{:.1f}"), ("own_peak_mib", "own peak, MiB", "{:.0f}"),
        ("peak_mib", "with workers, MiB", "{:.0f}"),
        ("given_mib", "weights, MiB", "{:.1f}"), ("constants_mib", "packed, MiB", "{:.1f}"),
    ),
}  # fmt: skip
"""By part of the benchmark: the figures in its table, their headings and formats."""


def table_of(part: str, found: Found) -> Table:
    """Format the figures of *part* for printing."""
    columns = COLUMNS[part]
    heading = ("network", "engine", *(title for _, title, _ in columns))
    rows = tuple(
        (model, engine, *(form.format(figures[key]) if key in figures else "" for key, _, form
                          in columns))
        for model, engines in found.items()
        for engine, figures in engines.items()
    )  # fmt: skip
    return Table("", heading, rows, frozenset(heading[2:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("overhead", __doc__)
    p.add_argument("--only", nargs="+", choices=COLUMNS, default=list(COLUMNS), help="tables")
    p.add_argument("--small", nargs="*", choices=SMALL, default=list(SMALL), help="for calls")
    p.add_argument(
        "--networks", nargs="*", choices=(*NETWORKS, *SMALL), metavar="NAME",
        default=["fused", "squeezenet", "resnet50"], help="for memory and compiling",
    )  # fmt: skip
    p.add_argument("--threads", type=int, default=default_threads())
    p.add_argument("--effort", choices=("none", "quick", "full"), default="none")
    p.add_argument("--repeats", type=int, default=3, help="number of processes; the median counts")
    p.add_argument("--folder", type=Path, default=Path("build/overhead"), help="models, libraries")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the tables in a document")
    return exit_code(partial(_run, p.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    """Measure what *options* ask for, print the tables, and write them."""
    bench = Bench(options.folder, options.threads, options.effort, options.repeats)
    found: dict[str, Found] = {}
    if "compiled" in options.only:
        found["compiled"] = bench.compiled(options.networks)
    if "calls" in options.only:
        found["calls"] = bench.measured("calls", options.small)
    if "first" in options.only:
        found["first"] = bench.measured("first", options.networks)
    for part, figures in found.items():
        publish([table_of(part, figures)], f"benchmarks.overhead {part}", options.into)
        print()
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, **found}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
