"""Reads under a condition: only where it holds; elsewhere the other value, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.builders import select
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program
from ansorpy.ir.verify import verify
from tests.budget import some
from tests.codegen.cuda.emulator import Emulated, emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put, random
from tests.codegen.random_guards import guarded_program

SEEDS = some(range(120))


def results(source: Program) -> tuple[list[Array], Array, Array]:
    """Inputs for *source*, what the interpreter makes of them, and where to compute it again."""
    *inputs, out = (param.buffer for param in source.params)
    arrays = [random(b.shape, b.dtype, n) for n, b in enumerate(inputs)]
    want, got = empty(out.shape, out.dtype), empty(out.shape, out.dtype)
    run_program(source, [*arrays, want])
    return arrays, want, got


def assert_same_bits(source: Program) -> None:
    arrays, want, got = results(source)
    Compiled(source)(*arrays, got)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("fill", [0.0, -0.0])
def test_lanes_that_share_an_element_and_not_a_condition(fill: float) -> None:
    a, b = buffer("A", 8), buffer("B", 16, 8)
    assert_same_bits(
        program(
            nest("s16 v8", lambda i, j: put(b, (i, j), select(i + j < 8, at(a, i), fill))),
            [a], [b],
        )
    )  # fmt: skip


@pytest.mark.parametrize("loops", ["v16", "s16", "u16"])
def test_padding_with_a_negative_zero_keeps_its_sign(loops: str) -> None:
    a, b = buffer("A", 8), buffer("B", 16)
    body = nest(loops, lambda j: put(b, (j,), select(j < 8, at(a, j), -0.0)))
    assert_same_bits(program(body, [a], [b]))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_conditions_around_reads(seed: int) -> None:
    source = guarded_program(seed)
    verify(source)
    assert_same_bits(source)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    made = {f"guarded{seed}": guarded_program(seed) for seed in SEEDS}
    return emulate(made, tmp_path_factory.mktemp("guarded"))


@needs_compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_random_conditions_around_reads_of_a_gpu(emulated: Emulated, seed: int) -> None:
    arrays, want, got = results(guarded_program(seed))
    emulated(f"guarded{seed}", [*arrays, got])
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
