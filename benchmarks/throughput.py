"""``python -m benchmarks.throughput``: candidates per second that a search samples and scores.

No program is built or run.  A table of one placed sketch goes through sampling, constraints, nest,
features, and the scores of a trained model; then a round of ten of all definitions and sketches
does the same.  Only candidates that satisfy the constraints count.  Last, whole rounds are timed as
in a search, including drawing placed sketches, either all new or all from an earlier round.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeVar

import numpy as np

import ansorpy as ap
from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.features import extract_all
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.programs import Programs
from ansorpy.evaluation.tables import Table
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import Pair, PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table as Rows
from ansorpy.search.population import sample_valid, score_all
from ansorpy.target import Target
from benchmarks.common.command import command_line
from benchmarks.common.pages import publish
from benchmarks.ops.families.conv2d import Conv2d

__all__ = ["Phases", "Rounds", "main", "measure_round", "measure_rounds", "measure_sketch"]

T = TypeVar("T")

_TRAINED_ON = 256
_SKETCHES = 10
_ROWS_A_SKETCH = 256


@dataclass(frozen=True)
class Phases:
    """Microseconds per candidate of each phase, and the resulting candidates per second."""

    case: str
    statements: int
    candidates: int
    sample: float
    valid: float
    nest: float
    features: float
    analytic: float
    trees: float

    @property
    def featured_per_s(self) -> float:
        """Candidates per second from sampling to features."""
        return 1e6 / (self.sample + self.valid + self.nest + self.features)

    @property
    def scored_per_s(self) -> float:
        """Candidates per second from sampling to the model's scores."""
        return 1 / (1 / self.featured_per_s + (self.analytic + self.trees) * 1e-6)

    def json(self) -> dict[str, str | int | float]:
        """The values for ``--json``."""
        rates = {"featured_per_s": self.featured_per_s, "scored_per_s": self.scored_per_s}
        return asdict(self) | rates


@dataclass(frozen=True)
class Rounds:
    """Candidates per second of a whole round: place sketches, sample rows, score all of them."""

    case: str
    candidates: int
    new_per_s: float
    """With placed sketches that were not seen before."""
    known_per_s: float
    """With placed sketches that were all seen before."""


def matmul() -> list[Tensor]:
    """512 x 512 x 512, the right operand a constant."""
    a, b = ap.placeholder((512, 512), name="A"), ap.placeholder((512, 512), name="B", constant=True)
    k = ap.reduce_axis(512, name="k")
    return [
        a, b, ap.compute((512, 512), lambda i, j: ap.sum(a[i, k] * b[k, j], axis=k), name="C"),
    ]  # fmt: skip


def convolution() -> list[Tensor]:
    """A layer of ResNet-50: 56 x 56 x 64, 3 x 3, bias and relu."""
    x, w, conv = Conv2d("conv", (56, 56), 64, 64, 3, 1, 1).convolution("conv")
    b = ap.placeholder((64,), name="b", constant=True)
    added = ap.compute(conv.shape, lambda n, i, j, c: conv[n, i, j, c] + b[c], name="bias")
    relu = ap.compute(conv.shape, lambda n, i, j, c: ap.maximum(added[n, i, j, c], 0.0), name="out")
    return [x, w, b, relu]


CASES: dict[str, Callable[[], list[Tensor]]] = {"matmul": matmul, "convolution": convolution}


def trained(task: Task, sampler: SketchSampler, rng: np.random.Generator) -> BoostedTrees:
    """A model trained on 256 programs, whose times are analytic estimates with noise."""
    model, sketches = BoostedTrees(), sampler.draw(8, rng)
    for sketch in sketches:
        table = sample_valid(sketch, _TRAINED_ON // len(sketches), rng)
        if len(table):
            programs = Programs(sketch.space, table)
            seconds = 1 / AnalyticModel().predict(task, programs)
            model.learn(task, programs, seconds * rng.lognormal(0, 0.3, len(table)))
    model.refit()
    return model


def timed(function: Callable[[], T], repeats: int) -> tuple[T, float]:
    """The result of *function* and its median seconds, after one untimed call."""
    result, seconds = function(), []
    for _ in range(repeats):
        start = perf_counter()
        result = function()
        seconds.append(perf_counter() - start)
    return result, median(seconds)


@dataclass
class _Bench:
    """Measures tables of placed sketches, processing all of them in each phase."""

    task: Task
    model: BoostedTrees
    rng: np.random.Generator
    repeats: int

    def phases(self, case: str, sketches: Sequence[PlacedSketch], rows: int) -> Phases:
        """Seconds of each phase for *rows* candidates of each placed sketch."""

        def sampled() -> list[Rows]:
            return [s.sample(rows, self.rng) for s in sketches]

        drawn, sample_s = timed(sampled, self.repeats)
        held, valid_s = timed(
            lambda: [s.valid(t) for s, t in zip(sketches, drawn, strict=True)], self.repeats
        )
        share = sum(map(np.count_nonzero, held)) / sum(map(len, held))
        tables = [sample_valid(s, rows, self.rng) for s in sketches]
        pairs = [(s, t) for s, t in zip(sketches, tables, strict=True) if len(t)]
        scored = self._scored(pairs)
        candidates = sum(len(t) for _, t in pairs)
        drawn_rows = sum(map(len, drawn)) * share
        return Phases(
            case,
            max(len(s.space.nest(t).leaves) for s, t in pairs),
            candidates,
            sample_s / drawn_rows * 1e6,
            valid_s / drawn_rows * 1e6,
            *(seconds / candidates * 1e6 for seconds in scored),
        )

    def _scored(self, pairs: Sequence[tuple[PlacedSketch, Rows]]) -> tuple[float, ...]:
        """Seconds of nests, features, the analytic model and the trees."""
        nests, nest_s = timed(lambda: [s.space.nest(t) for s, t in pairs], self.repeats)
        sized = [(nest, len(t)) for nest, (_, t) in zip(nests, pairs, strict=True)]
        features_s = timed(
            lambda: [extract_all(view_nest(nest, n)) for nest, n in sized], self.repeats
        )[1]
        # Views compute some numbers on first use, whether by the features or by the model.
        views = [view_nest(nest, n) for nest, n in sized]
        for part in views:
            extract_all(part)
        prior_s = timed(
            lambda: [self.model.prior.seconds(self.task, part) for part in views], self.repeats
        )[1]
        made = [Programs(sketch.space, table) for sketch, table in pairs]
        assert all(programs.nest for programs in made)  # not counted with the scores
        scores_s = timed(lambda: self.model.predict_all(self.task, made), self.repeats)[1]
        # A difference of times: noise may make it negative if they are short.
        return nest_s, features_s, prior_s, max(0.0, scores_s - features_s - prior_s)


def measure_sketch(name: str, rows: int, repeats: int, seed: int) -> list[Phases]:
    """Measure each sketch of case *name* with one placed sketch and *rows* candidates."""
    bench, sampler = _bench(name, repeats, seed)
    return [
        bench.phases(f"{name}, {pair.definition} {pair.sketch}", [sketch], rows)
        for pair, sketch in _sketches(sampler, bench.rng)
    ]


def measure_round(name: str, repeats: int, seed: int) -> Phases:
    """Measure the scoring of a search round: ten placed sketches with 256 candidates each."""
    bench, sampler = _bench(name, repeats, seed)
    sketches = sampler.draw(_SKETCHES, bench.rng)
    label = f"{name}, {len(sketches)} placed sketches"
    return bench.phases(label, sketches, _ROWS_A_SKETCH)


def measure_rounds(name: str, repeats: int, seed: int) -> Rounds:
    """Measure whole rounds of ten placed sketches with 256 candidates each, the same every time."""
    bench, _ = _bench(name, repeats, seed)

    def scored(sampler: SketchSampler) -> int:
        rng = np.random.default_rng(seed)
        drawn = sampler.draw(_SKETCHES, rng)
        tables = [(s, sample_valid(s, _ROWS_A_SKETCH, rng)) for s in drawn]
        return sum(map(len, score_all(bench.task, bench.model, tables)))

    new_s, candidates = [], 0
    for _ in range(repeats):
        sampler = SketchSampler(bench.task)
        start = perf_counter()
        candidates = scored(sampler)
        new_s.append(perf_counter() - start)
    known_s = timed(lambda: scored(sampler), repeats)[1]
    return Rounds(name, candidates, candidates / median(new_s), candidates / known_s)


def _bench(name: str, repeats: int, seed: int) -> tuple[_Bench, SketchSampler]:
    rng = np.random.default_rng(seed)
    task = Task(ComputeDAG.of(CASES[name]()), Target.host(), available_cores())
    sampler = SketchSampler(task)
    return _Bench(task, trained(task, sampler, rng), rng, repeats), sampler


def _sketches(sampler: SketchSampler, rng: np.random.Generator) -> list[tuple[Pair, PlacedSketch]]:
    drawn = sampler.draw(len(sampler.pairs), rng)
    return sorted(((s.pair, s) for s in drawn), key=lambda found: found[0].sketch)


def table_of(found: Sequence[Phases]) -> Table:
    """Format the figures for printing."""
    phases = ("sample", "valid", "nest", "features", "analytic", "trees")
    heading = ("case", "statements", "candidates", *phases, "featured/s", "scored/s")
    rows = tuple(
        (
            f.case, str(f.statements), str(f.candidates),
            *(f"{getattr(f, phase):.2f}" for phase in phases),
            f"{f.featured_per_s:,.0f}", f"{f.scored_per_s:,.0f}",
        )
        for f in found
    )  # fmt: skip
    return Table("Microseconds a candidate", heading, rows, frozenset(heading[1:]))


def rounds_table(found: Sequence[Rounds]) -> Table:
    """Format the figures of whole rounds for printing."""
    heading = ("case", "candidates", "new placed sketches", "known placed sketches")
    rows = tuple(
        (f.case, str(f.candidates), f"{f.new_per_s:,.0f}", f"{f.known_per_s:,.0f}") for f in found
    )
    return Table("Candidates a second of whole rounds", heading, rows, frozenset(heading[1:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    p = command_line("throughput", __doc__)
    p.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="cases")
    p.add_argument("--rows", type=int, default=4096, help="candidates of one placed sketch")
    p.add_argument("--repeats", type=int, default=7, help="number of timings; the median counts")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the tables in a document")
    return exit_code(partial(_run, p.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    """Measure the cases, print the tables, and write what was asked for."""
    found: list[Phases] = []
    rounds: list[Rounds] = []
    for name in options.only:
        found += measure_sketch(name, options.rows, options.repeats, options.seed)
        found.append(measure_round(name, options.repeats, options.seed))
        rounds.append(measure_rounds(name, options.repeats, options.seed))
    tables = [table_of(found), rounds_table(rounds)]
    publish(tables, "benchmarks.throughput", options.into)
    if options.json:
        figures = {"phases": [f.json() for f in found], "rounds": [asdict(r) for r in rounds]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
