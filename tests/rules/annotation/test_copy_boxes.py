"""Which tiles the copy engine may fill."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.sketch.tensor_cores import TensorCores
from ansorpy.schedule.boxes import is_box
from ansorpy.schedule.state import State
from tests.rules.asking import derive
from tests.tensor_cores import (
    HOPPER,
    activated,
    batch_matmul,
    convolution,
    heads,
    matmul,
    sketches,
    turned,
    viewed,
    wgmma_sketches,
)


def bulk_columns(tensors: list[Tensor], rng: np.random.Generator) -> list[str]:
    (sketch, *_) = wgmma_sketches(tensors, rng)
    return [name for name in sketch.columns if name.endswith(".bulk")]


@pytest.mark.parametrize(
    ("tensors", "boxed"),
    [
        (matmul("float16", 128, 64, 64), "AB"),
        (turned("int8", 64, 70, 64, left=False), "AB"),
        (matmul("int8", 64, 70, 64), "A"),  # the other one is turned on its way
        (matmul("float16", 128, 64, 36), "B"),  # rows of 72 bytes
        (turned("tf32", 64, 40, 32, left=False), ""),  # rounded on its way
        (activated(64, 48, 40), "B"),  # computed on its way
        (batch_matmul(2, 64, 32, 40), "AB"),
        (heads(1, 66, 32, 2, 48), "AB"),
        (viewed(64, 32, 40), "B"),  # the other one is a transposed view
        (convolution((2, 64), 16, 32, 3, pad=1), "W"),
    ],
)
def test_boxes_are_parts_of_dense_tensors(
    tensors: list[Tensor], boxed: str, rng: np.random.Generator
) -> None:
    found = bulk_columns(tensors, rng)
    assert sorted(name[0] for name in found) == sorted(boxed)


@pytest.mark.parametrize(("part", "boxed"), [(80, "AB"), (88, "")])
def test_tiles_of_parts_are_boxes_unless_they_reach_into_the_next_part(
    part: int, boxed: str
) -> None:
    """Tiles of 16 steps do not divide parts of 88."""
    state, (outer, _) = State.initial(matmul("float16", 128, 64, 3 * part)).split("C", "k", (part,))
    state, partial = state.rfactor("C", outer, 0)
    made = derive(TensorCores(), state, partial, HOPPER)[-1][0]
    tiles = [s for s in made.stages if s.swizzle]
    assert [s.name[0] for s in tiles if is_box(made, s)] == list(boxed)
    assert [s.name[0] for s in tiles] == ["A", "B"]


def test_only_swizzled_tiles_are_boxes(rng: np.random.Generator) -> None:
    sketch = next(
        s for s in sketches(matmul("float16", 64, 64, 64), rng, HOPPER)
        if "wgmma" not in str(s.placed.history)
    )  # fmt: skip
    assert not [name for name in sketch.columns if name.endswith(".bulk")]
    tile = next(s for s in sketch.placed.stages if s.name == "A.shared")
    assert not is_box(sketch.placed, tile)
    with pytest.raises(ScheduleError, match="not a swizzled box of a dense tensor"):
        sketch.placed.bulk("A.shared")


def test_most_rows_copy_all_tiles_alike(rng: np.random.Generator) -> None:
    sketch = wgmma_sketches(matmul("float16", 256, 256, 256), rng)[0]
    table = sketch.sample(256, rng)
    bulk = table[:, [name.endswith(".bulk") for name in sketch.columns]]
    assert bulk.all(axis=1).mean() > 0.5 and set(np.unique(bulk)) == {0, 1}
    assert (bulk == bulk[:, :1]).all(axis=1).mean() > 0.7


def test_the_blocks_of_a_cluster_are_limited(rng: np.random.Generator) -> None:
    sketch = wgmma_sketches(matmul("float16", 256, 256, 256), rng)[0]
    with pytest.raises(ScheduleError, match="9 blocks cannot share a copy; the most is 8"):
        sketch.placed.bulk("A.shared", 9)
