"""The operator suite compiles to cubins: of every family the smallest case, for two targets."""

from __future__ import annotations

import pytest

from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.launch.resources import check_launch, check_resources, parse_report
from ansorpy.target import Target
from benchmarks.ops.case import Case
from benchmarks.ops.cross import compile_for_gpu
from benchmarks.ops.suite import cases
from tests.budget import some
from tests.codegen.cuda.compiling import needs_nvrtc

pytestmark = needs_nvrtc
SM_80, SM_90 = Target.parse("sm_80"), Target.parse("sm_90")


def smallest() -> list[Case]:
    """The case of every family that computes least, at batch 1 where there are several."""
    found: dict[str, Case] = {}
    for case in cases():
        before = found.get(case.family)
        if before is None or case.dag_flops < before.dag_flops:
            found[case.family] = case
    return list(found.values())


@pytest.mark.parametrize("case", some(smallest()), ids=lambda case: case.name)
def test_the_smallest_case_of_each_family_compiles(case: Case) -> None:
    code = compile_for_gpu(case, SM_80, seed=0)
    assert code.cubin[:4] == b"\x7fELF"
    cubin, report = compile_source(code.source, SM_90)
    assert cubin[:4] == b"\x7fELF" and cubin != code.cubin
    for launch, taken in zip(code.plan.launches, parse_report(report, code.plan), strict=True):
        assert taken.shared_bytes <= launch.static_shared_bytes
        check_launch(launch, SM_90)
        check_resources(launch, taken, SM_90)
