"""Fragments: every element has one place, and it is the one the PTX ISA draws."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.fragments import (
    WARP,
    Digit,
    fragment_lanes,
    fragment_registers,
    fragment_shape,
    in_lane,
    in_register,
    in_tile,
)
from ansorpy.ir.intrinsics import (
    MMA_SYNC,
    WGMMA,
    Intrinsic,
    intrinsic,
    is_along,
    operand_tensors,
)

NAMES = [by.name for by in MMA_SYNC]


@pytest.mark.parametrize("by", WGMMA, ids=[by.name for by in WGMMA])
def test_warpgroups_share_their_sums_alone(by: Intrinsic) -> None:
    share, *others = by.fragments
    total, a, b = operand_tensors(by.pattern)
    assert by.asynchronous and by.team == fragment_lanes(share) == 4 * WARP and others == [(), ()]
    assert fragment_shape(share) == total.shape == (64, int(by.name.split("n")[1].split("k")[0]))
    at = list(np.indices(total.shape).reshape(2, -1))
    places = in_lane(share, at) * fragment_registers(share) + in_register(share, at)
    assert sorted(places.tolist()) == list(range(total.size))
    # PTX ISA: warps have 16 rows each; register 6 is in the second 8 columns, 8 rows down.
    rows = [i for i, j in zip(*at, strict=True) if in_lane(share, (i, j)) == 37 and j % 8 == 2]
    assert set(rows) == {17, 25} and in_register(share, (25, 10)) == 6
    order = by.name.split(".")[2]
    assert (is_along(by, a), is_along(by, b)) == (order[0] == "k", order[1] == "k")


@pytest.mark.parametrize("by", MMA_SYNC, ids=NAMES)
def test_lanes_and_registers_number_the_elements_of_an_operand(by: Intrinsic) -> None:
    for tensor, fragment in zip(operand_tensors(by.pattern), by.fragments, strict=True):
        assert fragment_shape(fragment) == tensor.shape
        assert fragment_registers(fragment) * WARP == tensor.size
        at = list(np.indices(tensor.shape).reshape(2, -1))
        places = in_lane(fragment, at) * fragment_registers(fragment) + in_register(fragment, at)
        assert sorted(places.tolist()) == list(range(tensor.size))


# Rows of tables in the PTX ISA: operand, register, what group and place in it hold there.
DRAWN = [
    ("mma.m16n8k16.float32.float16.float16", 1, 3, lambda g, q: (g + 8, 2 * q + 1)),
    ("mma.m16n8k16.float32.float16.float16", 1, 6, lambda g, q: (g + 8, 2 * q + 8)),
    ("mma.m16n8k16.float32.float16.float16", 2, 3, lambda g, q: (2 * q + 9, g)),
    ("mma.m16n8k16.float32.float16.float16", 0, 2, lambda g, q: (g + 8, 2 * q)),
    ("mma.m16n8k8.float32.tf32", 1, 2, lambda g, q: (g, q + 4)),
    ("mma.m16n8k8.float32.tf32", 2, 1, lambda g, q: (q + 4, g)),
    ("mma.m16n8k32.int32.int8.uint8", 1, 13, lambda g, q: (g + 8, 4 * q + 17)),
    ("mma.m16n8k32.int32.int8.uint8", 2, 6, lambda g, q: (4 * q + 18, g)),
]


@pytest.mark.parametrize(("name", "operand", "register", "element"), DRAWN)
def test_places_are_those_of_the_instruction_set(
    name: str, operand: int, register: int, element: object
) -> None:
    fragment = intrinsic(name).fragments[operand]
    for group in range(8):
        for place in range(4):
            at = element(group, place)  # type: ignore[operator]
            assert in_lane(fragment, at) == 4 * group + place
            assert in_register(fragment, at) == register


def test_larger_tensors_are_grids_of_fragments() -> None:
    fragment = ((), (Digit(2, register=2), Digit(8, lane=4)), (Digit(4, lane=1), Digit(2, 0, 1)))
    assert fragment_shape(fragment) == (1, 16, 8)
    assert in_tile(fragment, (5, 33, 15)) == (5, 2, 1)
    assert in_lane(fragment, (5, 33, 15)) == 4 * 1 + 3
    assert in_register(fragment, (5, 42, 15)) == 2 * 1 + 1
