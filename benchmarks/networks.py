"""Networks beside onnxruntime and openvino: ``python -m benchmarks.networks --json out.json``.

For each network and thread count: our time, the peers' times, and the faster peer's over ours
(above 1 we win).  ``--effort`` says how long each network is tuned first; records are kept in
``--db``, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ansorpy import api
from ansorpy.config import available_cores
from ansorpy.report.bench.result import Comparison
from ansorpy.report.bench.turns import Contender, compare
from ansorpy.report.engines.names import PEERS
from ansorpy.report.tables import Table, show
from benchmarks.light import NAMES, light_model_file

__all__ = ["Measured", "main", "ratios_table"]


@dataclass(frozen=True)
class Measured:
    """One network at one thread count."""

    name: str
    comparison: Comparison

    @property
    def ratio(self) -> float:
        """The faster peer's median time over ours."""
        times = {n: t.median_ms for n, t in self.comparison.timings.items()}
        return min(ms for n, ms in times.items() if n != "ansorpy") / times["ansorpy"]


def measure(name: str, threads: int, options: argparse.Namespace) -> Measured:
    """Tune the network as asked, then time it beside the peers."""
    path = light_model_file(name, options.seed, options.folder)
    api.compile(
        path,
        effort=options.effort,
        trials_per_task=options.trials_per_task,
        threads=threads,
        db=options.db,
        seed=options.seed,
    )
    ours = {"path": str(path), "db": str(options.db), "threads": threads}
    contenders = [Contender("ansorpy", "ansorpy.cli.engine:Ours", ours)]
    for peer in options.against:
        arguments = {"name": peer, "path": str(path), "threads": threads}
        contenders.append(Contender(peer, "ansorpy.report.engines.protocol:open_peer", arguments))
    return Measured(name, Comparison(name, threads, compare(contenders)))


def ratios_table(results: Sequence[Measured]) -> Table:
    """A row a network and thread count, and the geometric mean of the ratios."""
    engines = list(dict.fromkeys(n for r in results for n in r.comparison.timings))
    rows = []
    for r in results:
        times = (f"{r.comparison.timings[n].median_ms:.3f}" for n in engines)
        rows.append((r.name, str(r.comparison.threads), *times, f"{r.ratio:.2f}"))
    mean = geometric_mean([r.ratio for r in results])
    rows.append(("geometric mean", "", *("" for _ in engines), f"{mean:.2f}"))
    heading = ("network", "threads", *(f"{n} ms" for n in engines), "ratio")
    return Table("", heading, tuple(rows), frozenset(heading[1:]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for; prints a table and writes JSON."""
    options = _parser().parse_args(arguments)
    results: list[Measured] = []
    for name in options.models:
        for threads in options.threads:
            results.append(measure(name, threads, options))
            line = f"{name} at {threads} threads: {results[-1].ratio:.2f}"
            print(line, file=sys.stderr, flush=True)
            _write(results, options)
    show(ratios_table(results))


def _write(results: Sequence[Measured], options: argparse.Namespace) -> None:
    if options.json is None:
        return
    rows: list[dict[str, Any]] = [{**r.comparison.to_dict(), "ratio": r.ratio} for r in results]
    data = {
        "effort": options.effort,
        "seed": options.seed,
        "geometric_mean": geometric_mean([r.ratio for r in results]),
        "networks": rows,
    }
    options.json.write_text(json.dumps(data, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--effort", choices=("none", "quick", "full"), default="none")
    parser.add_argument("--trials-per-task", type=int)
    parser.add_argument("--threads", nargs="+", type=int, default=[available_cores()])
    parser.add_argument("--against", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--db", type=Path, default=Path("build/benchmarks.db"))
    parser.add_argument("--folder", type=Path, default=Path("build/light"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    main()
