"""What the analytic model expects of attention in the registers of warps."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.stage import KernelStyle
from ansorpy.target import Target
from ansorpy.tasks.predict import predicted_seconds
from tests.rules.attentions import attend

H100 = Target.parse("sm_90a")
GIVEN = {
    "mixed.warp.i/1": 4, "mixed.warp.i/2": 1, "mixed.warp.jm/1": 1, "mixed.warp.jm/2": 4,
    "k.shared.i2/1": 8, "v.shared.i2/1": 8, "mixed.warp.pipeline": 2, "k.shared.pad": 8,
    "v.shared.pad": 8,
}  # fmt: skip


def predicted(sketch: PlacedSketch, **changed: int) -> float:
    """Seconds of a program with some numbers *changed*; underscores stand for the names' signs."""
    names = {name.replace(".", "_").replace("/", "_"): name for name in GIVEN}
    numbers = {**GIVEN, **{names[name]: number for name, number in changed.items()}}
    row = np.array([numbers[name] for name in sketch.columns])
    task = Task(sketch.placed.definition, H100, 1)
    return predicted_seconds(task, sketch.resolve(row))


def test_choices_that_hide_latencies_and_spare_the_banks(rng: np.random.Generator) -> None:
    tensors = attend(16, 4096, 4096, 64, 64)
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), H100, 1))
    sketch = sampler.place(0, rng)
    good = predicted(sketch)
    flops = 4 * 16 * 4096**2 * 64
    assert 100e12 < flops / good < 700e12
    assert predicted(sketch, k_shared_pad=0, v_shared_pad=0) > 1.5 * good
    assert predicted(sketch, mixed_warp_pipeline=1) > 1.1 * good
    assert predicted(sketch, mixed_warp_i_1=2) > good
    assert predicted(sketch, mixed_warp_i_2=2) < good


def test_parts_of_keys_in_shared_memory_are_slower(rng: np.random.Generator) -> None:
    tensors = attend(16, 4096, 4096, 64, 64)
    task = Task(ComputeDAG.of(tensors), H100, 1)
    sampler = SketchSampler(task)
    rows = [s.stages[-1].kernel_style is KernelStyle.ROWS for s in sampler.sketches].index(True)
    parts = sampler.place(rows, rng)
    table = parts.sample(32, rng)
    best = min(predicted_seconds(task, parts.resolve(r)) for r in table[parts.valid(table)][:8])
    assert best > 4 * predicted(sampler.place(0, rng))
