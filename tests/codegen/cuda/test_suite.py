"""The operator suite compiles to cubins: of families the smallest case, for two targets in turn."""

from __future__ import annotations

from itertools import cycle

import pytest

from ansorpy.target import Target
from benchmarks.ops.case import Case
from benchmarks.ops.cross import compile_for_gpu
from benchmarks.ops.suite import cases
from tests.budget import some
from tests.codegen.cuda.compiling import needs_nvrtc

pytestmark = needs_nvrtc
TARGETS = Target.parse("sm_80"), Target.parse("sm_90")


def smallest() -> list[Case]:
    """The case of every family that computes least, at batch 1 where there are several."""
    found: dict[str, Case] = {}
    for case in cases():
        before = found.get(case.family)
        if before is None or case.dag_flops < before.dag_flops:
            found[case.family] = case
    return list(found.values())


@pytest.mark.parametrize(
    ("case", "target"),
    list(zip(some(smallest()), cycle(TARGETS), strict=False)),
    ids=lambda value: value.name,
)
def test_the_smallest_case_of_each_family_compiles(case: Case, target: Target) -> None:
    code = compile_for_gpu(case, target, seed=0)
    assert code.cubin[:4] == b"\x7fELF"
    for launch, taken in zip(code.plan.launches, code.resources, strict=True):
        assert taken.shared_bytes <= launch.static_shared_bytes
