"""What the assembler reports of kernels, and which do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansorpy.codegen.cuda.launch.plan import Launch, LaunchPlan
from ansorpy.codegen.cuda.launch.resources import (
    KernelResources,
    check_launch,
    check_resources,
    parse_report,
)
from ansorpy.errors import CodegenError
from ansorpy.target import Target

GPU = Target.parse("sm_80")
LAUNCH = Launch("k_0", (4, 1, 1), (256, 1, 1), (), static_shared_bytes=4096)
REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k_1' for 'sm_80'
ptxas info    : Function properties for k_1
ptxas         .     64 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 64 bytes cumulative stack size
ptxas info    : Compiling entry function 'k_0' for 'sm_80'
ptxas info    : Function properties for k_0
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 21 registers, used 1 barriers, 4096 bytes smem, 368 bytes cmem[0]
"""


def test_reports_are_read_in_the_order_of_the_plan() -> None:
    plan = LaunchPlan((LAUNCH, replace(LAUNCH, kernel="k_1")), 0)
    assert parse_report(REPORT, plan) == (
        KernelResources("k_0", 21, 0, 0, 4096),
        KernelResources("k_1", 255, 20, 64, 0),
    )


def test_a_kernel_without_a_report_is_left_out() -> None:
    plan = LaunchPlan((replace(LAUNCH, kernel="other"), LAUNCH), 0)
    assert parse_report(REPORT, plan) == (KernelResources("k_0", 21, 0, 0, 4096),)
    assert parse_report("", plan) == ()


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (replace(LAUNCH, block=(64, 32, 1)), "2048 threads per block, but the limit is 1024"),
        (replace(LAUNCH, dynamic_shared_bytes=170_000), "174096 bytes of shared memory"),
        (replace(LAUNCH, grid=(1, 70_000, 1)), "70000 blocks along y, but the limit is 65535"),
        (replace(LAUNCH, block=(2, 2, 128)), "128 threads along z, but the limit is 64"),
    ],
)
def test_launches_that_do_not_fit_are_refused(launch: Launch, message: str) -> None:
    check_launch(LAUNCH, GPU)
    with pytest.raises(CodegenError, match=message):
        check_launch(launch, GPU)


def test_blocks_whose_registers_do_not_suffice_are_refused() -> None:
    large = replace(LAUNCH, block=(1024, 1, 1))
    check_resources(large, KernelResources("k_0", 64, 0, 0, 0), GPU)
    with pytest.raises(CodegenError, match="73728 registers, but the limit is 65536"):
        check_resources(large, KernelResources("k_0", 65, 0, 0, 0), GPU)
    with pytest.raises(CodegenError, match="300 registers per thread"):
        check_resources(LAUNCH, KernelResources("k_0", 300, 0, 0, 0), GPU)
