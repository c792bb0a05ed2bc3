"""The recorded spaces: task, definition and number of points of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.space import Space
from ansorpy.search.population import sample_valid, score
from ansorpy.target import Target
from benchmarks.ops.case import Case
from benchmarks.ops.suite import RESNET_CONV, case_named
from benchmarks.spaces.grid import Grid

__all__ = ["FOLDER", "PLANS", "Plan", "derived_today", "plan_named", "recorded"]

FOLDER = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Plan:
    """A space to record.

    Args:
        case: The operator that is computed.
        definition: Prefix of the name of the definition that is scheduled.
        points: Approximate maximum number of points.
        threads: Number of threads the programs run on.
    """

    name: str
    case: Case
    definition: str = "direct"
    points: int = 2100
    threads: int = 2

    draws: ClassVar[int] = 8
    sampled: ClassVar[int] = 256

    @property
    def path(self) -> Path:
        """Path of the recorded space."""
        return FOLDER / f"{self.name}.npz"

    def task(self, target: Target) -> Task:
        return Task(self.case.dag, target, self.threads, name=self.name)

    def sketch(self, task: Task) -> PlacedSketch:
        """The most promising of some random placed sketches, according to the analytic model."""
        rng = np.random.default_rng(0)
        sampler = SketchSampler(task)
        best: tuple[float, PlacedSketch] | None = None
        for pair in sampler.pairs:
            for _ in range(self.draws if pair.definition.startswith(self.definition) else 0):
                sketch = sampler.place(pair.sketch, rng)
                table = sample_valid(sketch, self.sampled, rng)
                scores = score(task, AnalyticModel(), sketch, table).scores
                # The mean of the best few, as a single row's score says little.
                promise = float(np.sort(scores)[-8:].mean()) if len(scores) else 0.0
                if best is None or promise > best[0]:
                    best = (promise, sketch)
        if best is None:
            raise UsageError(f"{self.name} has no definition {self.definition}")
        return best[1]


PLANS = (
    Plan("matmul", case_named("GMM.512x512x512.b1"), points=4000),
    Plan("conv", RESNET_CONV, points=2500),
    Plan("winograd", case_named("C2D.14x14.256-256.k3s1.b1"), "winograd(4x4)", points=2400),
    Plan("depthwise", case_named("DEP.112x112.32-32.k3s1.b1"), points=2300),
    Plan("softmax", case_named("SOFTMAX.12x128x128")),
    Plan("grouped_strided", case_named("GRP.56x56.64-128.k3s2.b1"), points=3000),
    Plan("batched_transposed", case_named("TBG.128x12x64.b1"), points=2200),
    Plan("matvec", case_named("PROJ.1x768-3072")),
    Plan("odd_matmul", case_named("ODD.GMM.127x127x127.b1"), threads=1),
    Plan("conv1d", case_named("C1D.64.256-256.k5s1.b1"), threads=1),
    Plan("transposed_conv", case_named("T2D.16x16.128-64.k4s2.b1")),
    Plan("layer_norm", case_named("LN.128x768")),
)


def plan_named(name: str) -> Plan:
    """The plan with that name.

    Raises:
        UsageError: There is no such plan.
    """
    for plan in PLANS:
        if plan.name == name:
            return plan
    raise UsageError(
        f"no space is called {name!r}", hint=f"there are {', '.join(p.name for p in PLANS)}"
    )


def recorded(folder: Path = FOLDER, names: Sequence[str] = ()) -> list[Path]:
    """Files of the spaces in *folder*, or of those that are named.

    Raises:
        UsageError: There is no such space.
    """
    known = {path.stem: path for path in sorted(folder.glob("*.npz"))}
    for name in names:
        if name not in known:
            raise UsageError(f"no space is called {name!r}", hint=f"choose from {', '.join(known)}")
    return [known[name] for name in names or known]


def derived_today(grid: Grid, programs: int = 16) -> float:
    """The share of a sample of the grid's programs that the current rules would derive.

    Below 1, the rules produced another sketch, other domains or other constraints when the grid was
    recorded.  It can then still tell searches apart, but does not represent the current space.
    """
    header, space = grid.header, Space(grid.state)
    numbers = np.linspace(0, len(grid.rows) - 1, programs).astype(int)
    schedules = [space.resolve(grid.rows[n]).history for n in numbers]
    sampler = SketchSampler(grid.task, preset_for(header.target, header.preset))
    found = sampler.recover(header.definition, schedules)
    return len({m for r in found for m in r.members.tolist()}) / len(schedules)
