"""PadTiles: unused elements after the rows of shared tiles."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.annotation.pad_tiles import PadTiles
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.tables.size import as_array
from tests import workloads
from tests.rules.gpu_spaces import after


def test_shared_tiles_have_a_pad_of_whole_elements(rng: np.random.Generator) -> None:
    space = after(PadTiles((0, 2, 4, 16)), workloads.matmul(64, 64, 64))
    pads = {d.name: d.domain for d in space.decisions if d.name.endswith(".pad")}
    assert pads == {"A.shared.pad": OneOf((0, 1, 4)), "B.shared.pad": OneOf((0, 1, 4))}
    table = space.sample(400, rng)
    column = {name: table[:, at] for at, name in enumerate(space.columns)}
    mask = np.ones(len(table), dtype=np.bool_)
    for name, row in (("A", "i1"), ("B", "i1")):
        mask &= column[f"{name}.shared.pad"] % column[f"{name}.shared.{row}/1"] == 0
    held = [
        c.holds(Bounds(space.state, space.values(table)))
        for c in space.constraints
        if "pad" in c.name
    ]
    assert np.array_equal(np.all([as_array(h, len(table)) for h in held], axis=0), mask)
    assert 0 < mask.sum() < len(mask)


def test_what_is_not_shared_is_not_padded() -> None:
    state = after(PadTiles(), workloads.max_pool2d(1, 8, 8, 4)).state
    assert all(stage.pad == (0,) for stage in state.stages)
