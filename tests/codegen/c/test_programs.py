"""Generated C computes what the interpreter does, and compilers find nothing to warn of."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.c.style import Style
from ansorpy.ir.interpret import run_program
from tests.budget import some
from tests.codegen.c.compiled import CompiledC, needs_cc
from tests.codegen.random_programs import RandomProgram
from tests.codegen.test_random_programs import arguments

pytestmark = needs_cc
SEEDS = (*some(range(40)), 125, 230, 404)
STYLES = {"narrow": Style(32), "wide": Style(64), "vectors": Style(64, vectors=True)}


@pytest.fixture(scope="module", params=STYLES)
def random_programs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> CompiledC:
    made = {f"random{seed}": RandomProgram(seed).build() for seed in SEEDS}
    return CompiledC(made, tmp_path_factory.mktemp("random"), STYLES[request.param])


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_equal_the_interpreter(random_programs: CompiledC, seed: int) -> None:
    source = RandomProgram(seed).build()
    want, got = arguments(source, seed), arguments(source, seed)
    run_program(source, want)
    random_programs(f"random{seed}", got)
    for expected, found in zip(want, got, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
