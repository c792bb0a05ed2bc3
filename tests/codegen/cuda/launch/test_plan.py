"""Launch plans of programs with dimensions: which kernels a call launches, and with which grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.device.protocol import launch_all
from ansorpy.codegen.cuda.launch.packed import PACKING, packed
from ansorpy.codegen.cuda.launch.plan import Argument, Launch, LaunchPlan
from ansorpy.codegen.cuda.launch.resources import check_launch
from ansorpy.errors import CodegenError, ForeignFile
from ansorpy.ir.extents import dim, dims_of
from ansorpy.ir.sizes import at
from ansorpy.target import Target
from tests.codegen.cuda.simulated import SimulatedDevice

N, M = dim("n", 0, 4000), dim("m", 8, 96, step=8)
TILES = Launch(
    "tiles", ((N + 31) // 32, M // 8, 1), (32, 1, 1),
    (Argument("x", "parameter", 1), Argument("t", "workspace", 256), Argument("m", "size", 1, 8)),
)  # fmt: skip
FEW = replace(TILES, kernel="few", grid=(N, 1, 1), where=(17 - N,))
PLAN = LaunchPlan((TILES, FEW), 512, dims_of([N, M]))


def test_grids_are_those_of_the_call(rng: np.random.Generator) -> None:
    for n, m in zip(rng.integers(1, 4001, 20), rng.integers(1, 13, 20) * 8, strict=True):
        sizes = [int(n), int(m)]
        launches = PLAN.at(sizes)
        assert launches[0].grid == (-(-n // 32), m // 8, 1) and launches[0].block == (32, 1, 1)
        assert [x.kernel for x in launches] == ["tiles", "few"][: 1 + (n <= 16)]
        assert launches[-1].grid[0] == at(
            launches[-1].grid[0], dict(zip(PLAN.dims, sizes, strict=True))
        )


def test_nothing_is_launched_without_a_block() -> None:
    assert PLAN.at([0, 8]) == ()
    alone = LaunchPlan((replace(TILES, grid=(2, 1, 1)),), 0)
    assert alone.at([]) == alone.launches


def test_kernels_get_addresses_and_sizes() -> None:
    launched: list[tuple[str, tuple[int, ...]]] = []

    class Device(SimulatedDevice):
        def launch(self, module: object, launch: Launch, values: Sequence[int]) -> None:
            launched.append((launch.kernel, tuple(values)))

    launch_all(Device(), None, PLAN, [1 << 20, 2 << 20], 3 << 20, [16, 40])
    values = (2 << 20, (3 << 20) + 256, 40)
    assert launched == [("tiles", values), ("few", values)]


def test_a_plan_is_stored_with_its_expressions() -> None:
    code = packed(CudaCode("", b"cubin", PLAN, (), 0.0), "k")
    assert PACKING.unpack(code.code) == (PLAN, b"cubin")
    for known, wrong in ((b'"sum"', b'"gum"'), (b",4000,1]", b",-100,1]")):
        assert known in code.code
        with pytest.raises(ForeignFile, match="not a GPU program"):
            PACKING.unpack(code.code.replace(known, wrong))


def test_the_largest_grid_must_fit() -> None:
    gpu = Target.parse("sm_80")
    check_launch(FEW, gpu)
    with pytest.raises(CodegenError, match="4000000 blocks along y, but the limit is 65535"):
        check_launch(replace(FEW, grid=(1, N * 1000, 1)), gpu)
