"""Turns of the banks of shared memory: what the hardware is documented to do."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ansorpy.cost.analytic.gpu.banks import bank_cycles


def turns(extents: list[int], strides: list[int], width: int) -> float:
    sizes, jumps = ([np.array([float(n)]) for n in numbers] for numbers in (extents, strides))
    return float(bank_cycles(sizes, jumps, np.array([float(width)]), 32)[0])


@pytest.mark.parametrize(
    ("extents", "strides", "width", "expected"),
    [
        ([32], [4], 4, 1),  # a word each, one after another
        ([32], [0], 4, 1),  # all the same one
        ([32], [128], 4, 32),  # a column of rows as long as all banks
        ([32], [132], 4, 1),  # the same with a word between rows
        ([32], [8], 4, 2),
        ([32], [16], 16, 4),  # 512 bytes
        ([16, 2], [16, 0], 16, 2),  # both halves of the warp the same
        ([16, 2], [32, 0], 16, 4),  # every other vector
        ([8, 4], [0, 80], 16, 1),  # rows of 16 elements and a pad of 4
        ([4, 8], [0, 64], 16, 4),  # the same without a pad
        ([8], [4], 4, 1),  # a quarter of a warp
    ],
)
def test_lanes_meet_in_banks(
    extents: list[int], strides: list[int], width: int, expected: float
) -> None:
    assert turns(extents, strides, width) == expected


def test_turns_are_the_most_words_of_one_bank(rng: np.random.Generator) -> None:
    for _ in range(200):
        extents = [int(n) for n in rng.choice([1, 2, 3, 4, 8, 16, 32], 2)]
        width = int(rng.choice([4, 8, 16]))
        strides = [int(n) * width for n in rng.integers(0, 40, 2)]
        lanes = [a * strides[1] + b * strides[0] for a, b in product(*map(range, extents[::-1]))]
        words = {address // width for address in lanes[:32]}
        groups = [word % (128 // width) for word in words]
        assert turns(extents, strides, width) == max(groups.count(g) for g in groups)
