"""ReductionParts: how many blocks should share one reduction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.ir.tensor import Tensor
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests import workloads
from tests.budget import examples
from tests.rules.algorithms.convolutions import convolution
from tests.tensor_cores import HOPPER, TYPES, matmul

PARTS = ReductionParts()


def counts(tensors: Sequence[Tensor], stage: str, target: Target = HOPPER) -> list[int]:
    state = State.initial(tensors)
    return PARTS.counts(state, state.stage(stage), target)


@pytest.mark.parametrize(
    ("tensors", "stage", "expected"),
    [
        # tensor cores: 32, 3 and 16 of the largest tiles
        (matmul("float16", 1024, 1024, 4096), "C", [2, 4]),
        (matmul("float16", 128, 768, 3072), "C", [6, 8, 12, 16, 24, 32]),
        (matmul("float16", 2048, 2048, 4096), "C", []),
        # plain threads
        (workloads.matmul(128, 768, 3072), "C", [3, 4, 6, 8, 12, 16]),
        (convolution((7, 7), (3, 3), 512, 512, pad=1), "conv", [8, 16, 32]),
        # few rows: tiles are no higher than they are
        (workloads.matmul(1, 1000, 2048), "C", [4, 8, 16]),
        # parts of at least 64 steps; of at least 512
        (workloads.matmul(16, 16, 640), "C", [2, 4, 5, 8, 10]),
        (workloads.min_reduce(1, 1 << 14), "B", [4, 8, 16, 32]),
        # a prime number of steps, in whole rows
        (workloads.matmul(16, 16, 509), "C", []),
        (workloads.matrix_norm(1, 263, 1021), "squares", [53, 88, 132]),
    ],
)
def test_parts_fill_the_grid(tensors: list[Tensor], stage: str, expected: list[int]) -> None:
    assert counts(tensors, stage) == expected


def test_if_no_number_is_large_enough_the_largest_is_taken() -> None:
    assert counts(workloads.matmul(16, 16, 3 * 509), "C") == [3]


def test_parts_on_tensor_cores_are_whole_fragments_if_possible() -> None:
    assert counts(matmul("float16", 16, 16, 720), "C") == [3, 5, 9]
    assert counts(matmul("float16", 16, 16, 675), "C") == [3, 5, 9]


@examples(60)
@given(
    kind=sampled_from(sorted(TYPES)), n=integers(1, 3000), m=integers(1, 3000),
    k=integers(1, 6000),
)  # fmt: skip
def test_parts_are_equal_long_and_not_too_many(kind: str, n: int, m: int, k: int) -> None:
    tensors = matmul(kind, n, m, k)
    state = State.initial(tensors)
    most = PARTS.most_that_fill(state, state.stage("C"), HOPPER)
    found = counts(tensors, "C")
    assert found == sorted(set(found))
    for parts in found:
        assert 2 <= parts <= most and k % parts == 0 and k // parts >= PARTS.least
