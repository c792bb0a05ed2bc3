"""The candidates a search asks for and the objects it builds stay the same, for the same seed.

A change that only moves code changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from llvmlite import binding

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.search.population import Candidate
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategy import Context
from ansorpy.target import Target
from tests.regression.drawing import draw, sampler_of, task_of

CPU, GPU = Target.parse("x86-64-v3"), Target.parse("sm_90")

LLVM = (22, 1, 0)
"""The version whose objects are kept; with another one, set it and run with --update-golden."""

EVOLUTION = partial(Evolution, sketches=4, scouts=4, population=128, generations=2)
"""Of its own: the golden candidates depend on these numbers."""

OBJECTS = (
    "matmul", "dense", "int8_matmul", "conv2d_strided", "conv2d_winograd", "depthwise_pointwise",
    "softmax", "layer_norm", "attention", "gelu", "gather", "transpose",
)  # fmt: skip


@pytest.mark.skipif(binding.llvm_version_info != LLVM, reason=f"digests are of objects of {LLVM}")
@pytest.mark.parametrize("operator", OBJECTS)
def test_objects(operator: str, golden: Callable[[str], None]) -> None:
    lines = []
    for drawn in draw(operator, CPU, count=2):
        lines.append(drawn.decided)
        for program in (drawn.lowered.bind, drawn.lowered.run):
            if program is not None:
                made = build(program, CPU, symbol="kernel", prefetch=program is drawn.lowered.run)
                sizes = f"{len(made.code)} bytes, workspace {made.workspace_bytes(4)}"
                lines.append(f"{sizes}, digest {made.digest}")
    golden("\n".join(lines))


def asked(context: Context, rounds: int = 2, n: int = 6) -> list[Candidate]:
    """What evolution asks for when every trial takes as long as predicted."""
    strategy, found = EVOLUTION(), list[Candidate]()
    for _ in range(rounds):
        picked = strategy.ask(context, n).best[:n]
        context.note(picked)
        strategy.tell([(c, MeasureResult(TrialKind.OK, (1 / c.score,))) for c in picked])
        found += picked
    return found


@pytest.mark.parametrize("target", [CPU, GPU], ids=lambda target: target.name)
@pytest.mark.parametrize("operator", ["matmul", "conv2d_winograd", "softmax", "float16_matmul"])
def test_candidates(operator: str, target: Target, golden: Callable[[str], None]) -> None:
    sampler, rng = sampler_of(operator, target), np.random.default_rng(20)
    context = Context(task_of(operator, target), sampler, AnalyticModel(), rng)
    lines = []
    for candidate in asked(context):
        pair = candidate.sketch.pair
        values = " ".join(map(str, candidate.row.tolist()))
        lines.append(f"{pair.definition} {pair.sketch}: {values}")
    golden("\n".join(lines))
