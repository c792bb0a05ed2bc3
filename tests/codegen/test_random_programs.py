"""Generated code computes what the interpreter computes, whatever the mixture of loops."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program
from ansorpy.target import Target
from tests.budget import some
from tests.codegen.programs import Array, Compiled
from tests.codegen.random_programs import RandomProgram


def arguments(source: Program, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    made = []
    for param in source.params:
        dtype = param.buffer.dtype
        values = rng.integers(-8, 9, param.buffer.shape)
        made.append((values / 8 if dtype.is_float else values).astype(dtype.numpy))
    return made


# 125, 230 and 404 reduce in a loop of one iteration: an array of one element meets a number.
@pytest.mark.parametrize("seed", [*some(range(60)), 125, 230, 404])
def test_generated_code_equals_the_interpreter(seed: int) -> None:
    source = RandomProgram(seed).build()
    want, got = arguments(source, seed), arguments(source, seed)
    run_program(source, want)
    Compiled(source)(*got, threads=1 + seed % 3)
    for expected, found in zip(want, got, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", some(range(60, 100)))
def test_promotion_changes_no_result(seed: int) -> None:
    source = RandomProgram(seed).build()
    want, got = arguments(source, seed), arguments(source, seed)
    run_program(source, want)
    run_program(promote(source, Target.parse("x86-64-v4")), got)
    for expected, found in zip(want, got, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
