"""Random changes of random programs: programs that fail in the interpreter are never proved."""

from __future__ import annotations

import pytest

from ansorpy.ir.prove import Verdict
from ansorpy.rules.presets import ANSOR_CPU, CPU, CUDA, Preset
from ansorpy.target import Target
from benchmarks.prove.judged import mutants

SM_80 = Target.parse("sm_80")


@pytest.mark.parametrize(
    ("target", "preset", "count"),
    [(Target.host(), CPU, 60), (Target.host(), ANSOR_CPU, 40), (SM_80, CUDA, 12)],
    ids=["cpu", "ansor", "gpu"],
)
def test_no_mutant_that_faults_is_proved(target: Target, preset: Preset, count: int) -> None:
    found = list(mutants(target, preset, seed=7, count=count))
    wrong = [(m.change, m.fault) for m in found if m.is_false_proof]
    assert wrong == []
    assert sum(m.fault is not None for m in found) > count // 4
    assert any(m.fault is None and m.proof.verdict is Verdict.PROVED for m in found)


def test_mutants_of_cpu_programs_that_run_are_not_refuted() -> None:
    found = mutants(Target.host(), CPU, seed=11, count=40)
    assert [(m.change, m.proof.refuted[0].message) for m in found if m.is_false_alarm] == []
