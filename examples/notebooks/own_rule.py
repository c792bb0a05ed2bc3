# %% [markdown]
# # A rule of your own
#
# Sketch rules derive schedules with open sizes from a definition. A rule is a frozen dataclass:
# `meets` says whether it applies, and why; `apply` derives states.

# %%
from collections.abc import Iterable
from dataclasses import dataclass

import ansorpy as ap
from ansorpy.ir.expr import AxisKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.presets import ANSOR_CPU
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State


@dataclass(frozen=True)
class SplitLongRows(SketchRule):
    """Split the last loop of a long elementwise stage once, its size open."""

    least: int = 1024

    def meets(self, state: State, stage_id: int, target: ap.Target) -> Verdict:
        stage = state.stage(stage_id)
        if not stage.iters or stage.iters[-1].kind is not AxisKind.SPACE:
            return Verdict.skip("its last loop accumulates")
        extent = stage.iters[-1].extent
        if not isinstance(extent, int) or extent < self.least:
            return Verdict.skip(f"its rows are shorter than {self.least}")
        return Verdict.apply_and_skip_rest("a long row: a block of it at a time")

    def apply(self, state: State, stage_id: int, target: ap.Target) -> Iterable[Derived]:
        state, _ = state.split(stage_id, state.stage(stage_id).iters[-1], (None,))
        yield state, stage_id - 1


# %%
X = ap.placeholder((64, 4096), name="X")
Y = ap.compute((64, 4096), lambda i, j: ap.tanh(X[i, j]) * 2.0, name="Y")
rule = SplitLongRows()
[(sketch, _)] = rule.apply(ap.State.initial([X, Y]), 1, ap.Target.parse("host"))
sketch

# %% [markdown]
# Give it to a search, before those that exist:

# %%
kernel = ap.tune([X, Y], rules=[rule, *ANSOR_CPU.sketch], trials=64, db="gallery.db")
kernel
