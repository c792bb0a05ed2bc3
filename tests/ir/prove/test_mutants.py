"""Random changes of random programs: programs that fail in the interpreter are never proved."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ansorpy.ir.dtypes import DType
from ansorpy.ir.prove import Verdict, prove
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.rules.presets import ANSOR_CPU, CPU, CUDA, Preset
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.target import Target
from tests.campaigns.proofs.judged import judged, mutants
from tests.campaigns.proofs.mutants import mutant
from tests.properties.launched_dags import random_launched_program

SM_80 = Target.parse("sm_80")


@pytest.mark.parametrize(
    ("target", "preset", "count"),
    [(Target.host(), CPU, 18), (Target.host(), ANSOR_CPU, 14), (SM_80, CUDA, 6)],
    ids=["cpu", "ansor", "gpu"],
)
def test_no_mutant_that_faults_is_proved(target: Target, preset: Preset, count: int) -> None:
    found = list(mutants(target, preset, seed=7, count=count))
    wrong = [(m.change, m.fault) for m in found if m.is_false_proof]
    assert wrong == []
    assert sum(m.fault is not None for m in found) > count // 4
    assert any(m.fault is None and m.proof.verdict is Verdict.PROVED for m in found)


def test_no_mutant_that_faults_at_some_size_is_proved() -> None:
    # Not of every seed: isl takes a minute for some mutants, as :func:`decide` says.
    rng, verdicts = np.random.default_rng(1), Counter[tuple[Verdict, bool]]()
    while verdicts.total() < 5:
        found = random_launched_program(rng, (DType.FLOAT32,), SM_80, CUDA, longest=6)
        changed = None if found is None else mutant(found[1].run, rng)
        if found is None or changed is None:
            continue
        program, change = changed
        ends = ({d: d.low for d in program.dims}, {d: d.high for d in program.dims})
        runs = [judged(Lowered(program_at(program, e), found[1].bind), change, rng) for e in ends]
        verdict = prove(program, found[1].bind).verdict
        faults = [run.fault for run in runs if run.fault is not None]
        assert verdict is not Verdict.PROVED or not faults, (change, faults)
        verdicts[verdict, bool(faults)] += 1
    assert verdicts[Verdict.REFUTED, True]


def test_mutants_of_cpu_programs_that_run_are_not_refuted() -> None:
    found = mutants(Target.host(), CPU, seed=11, count=20)
    assert [(m.change, m.proof.refuted[0].message) for m in found if m.is_false_alarm] == []
