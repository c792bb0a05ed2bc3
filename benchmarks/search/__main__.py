"""``python -m benchmarks.search``: count the trials that strategies need on recorded spaces.

Each space is a complete grid: every point was measured, so a search is replayed without hardware
and without noise.  A contestant is STRATEGY or STRATEGY:SELECTOR with a cost model, run with each
seed until it reaches 99 % of the best speed; every strategy is run with every cost model given.
"uniform" is the number of uniform draws needed without a model, which is computed, not simulated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ansorpy.config import available_cores
from ansorpy.cost.models import MODELS
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.evaluation.tables import Table, show
from ansorpy.measure.recorded_grid import Grid, read_grid
from benchmarks.search.catalogue import FOLDER, derived_today
from benchmarks.search.race import FRACTIONS, Contestant, Race, run
from benchmarks.search.report import (
    Results,
    Summary,
    means_table,
    spaces_table,
    summary,
    uniform,
)

__all__ = ["compare", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    try:
        spaces = _spaces(options.folder, options.spaces)
        if options.list:
            show(_listed(spaces))
            return 0
        contestants = [
            Contestant.parse(text, model)
            for text in options.strategies
            for model in options.cost_model
        ]
        results = compare(
            spaces, contestants, options.seeds, options.round, options.most, options.jobs
        )
    except AnsorpyError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for fraction in FRACTIONS:
        show(spaces_table([s for s in results.summaries if s.fraction == fraction], fraction))
        print()
    show(means_table(results.summaries))
    if options.json is not None:
        options.json.write_text(results.model_dump_json(indent=1) + "\n")
    return 0


def compare(
    spaces: Sequence[Path],
    contestants: Sequence[Contestant],
    seeds: int,
    round_size: int = 8,
    most: int = 512,
    jobs: int = 1,
) -> Results:
    """Let every contestant search every space with every seed."""
    races = [
        Race(space, contestant, seed, round_size, most)
        for space in spaces
        for contestant in contestants
        for seed in range(seeds)
    ]
    if jobs == 1:
        found = [run(race) for race in races]
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(run, races))
    summaries: list[Summary] = []
    traces: dict[str, dict[str, tuple[tuple[float, ...], ...]]] = {}
    by_race = dict(zip(races, found, strict=True))
    for space in spaces:
        grid = read_grid(space)
        summaries += [uniform(space.stem, grid, fraction) for fraction in FRACTIONS]
        for contestant in contestants:
            own = [by_race[r] for r in races if (r.space, r.contestant) == (space, contestant)]
            traces.setdefault(space.stem, {})[contestant.name] = tuple(map(tuple, own))
            summaries += [
                summary(space.stem, contestant.name, fraction, own, most) for fraction in FRACTIONS
            ]
    return Results(
        seeds=seeds, round_size=round_size, most=most, summaries=tuple(summaries), traces=traces
    )


def _spaces(folder: Path, names: Sequence[str]) -> list[Path]:
    """Files of the named spaces; all of the folder's by default."""
    known = {path.stem: path for path in sorted(folder.glob("*.npz"))}
    for name in names:
        if name not in known:
            raise UsageError(f"no space is called {name!r}", hint=f"choose from {', '.join(known)}")
    return [known[name] for name in names or known]


def _listed(spaces: Sequence[Path]) -> Table:
    heading = ("space", "definition", "points", "refused", "failed", "best ms", "worst ms",
               "threads", "derived today", "recorded")  # fmt: skip
    rows = tuple(_row(read_grid(path)) for path in spaces)
    return Table("", heading, rows, frozenset(heading[2:-1]))


def _row(grid: Grid) -> tuple[str, ...]:
    header, times = grid.header, grid.times[np.isfinite(grid.times)]
    return (
        header.name, header.definition, str(len(grid.rows)), str(header.refused),
        str(len(grid.rows) - len(times)), f"{times.min() * 1e3:.4f}", f"{times.max() * 1e3:.3f}",
        str(header.threads), f"{derived_today(grid):.0%}", f"{header.date}, {header.machine}",
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--strategies", nargs="+", default=["evolution"], metavar="NAME[:SELECTOR]")
    p.add_argument("--cost-model", nargs="+", default=["boosted"], choices=MODELS.names,
                   metavar="NAME", help=f"{', '.join(MODELS.names)}; default boosted")  # fmt: skip
    p.add_argument("--spaces", nargs="+", default=[], metavar="NAME", help="default: all")
    p.add_argument(
        "--seeds", type=int, default=20, help="searches per contestant and space; default 20"
    )
    p.add_argument("--round", type=int, default=8, help="trials per round; default 8")
    p.add_argument("--most", type=int, default=512, help="trials after which a search stops")
    p.add_argument("--jobs", type=int, default=available_cores(), help="processes; default: cores")
    p.add_argument("--folder", type=Path, default=FOLDER, help="folder of recorded spaces")
    p.add_argument("--list", action="store_true", help="print the spaces and exit")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    return p


if __name__ == "__main__":
    sys.exit(main())
