"""A sample of the suites: nothing is refuted, and all is decided but what data decides."""

from __future__ import annotations

import pytest

from ansorpy.rules.presets import ANSOR_CPU, CPU, CUDA, Preset
from ansorpy.target import Target
from tests.campaigns.proofs.suites import of_networks, of_operators, proved

SPACES = {
    "cpu": (Target.host(), CPU), "ansor": (Target.host(), ANSOR_CPU),
    "gpu": (Target.parse("sm_90a"), CUDA),
}  # fmt: skip


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("target", "preset"), SPACES.values(), ids=SPACES)
def test_programs_of_the_suites_are_decided(target: Target, preset: Preset) -> None:
    definitions = [*of_operators(every=36), *of_networks(["squeezenet"], every=20)]
    found = list(proved(definitions, target, preset, seed=5))
    assert len(found) >= len(definitions) // 2
    for program in found:
        assert not program.proof.refuted, (program.name, program.proof.refuted[0])
        assert program.proof.is_decided, (program.name, program.proof)
