"""Kernels for all sizes: random definitions with dimensions under schedules of GPU rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.emit.program import CudaSource, emit_cuda
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Program
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.rules.presets import ANSOR_CUDA, CUDA
from ansorpy.schedule.lowering.dispatch import dispatched
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from tests.budget import some
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import TARGET, Array, Emulated, needs_compiler
from tests.conftest import session_seed
from tests.properties.launched_dags import random_launched_program
from tests.properties.random_dags import drawn_sizes
from tests.properties.random_elements import TYPES, random_values
from tests.rounding import Reference
from tests.run_native import run_lowered
from tests.tensor_cores import GPU, HOPPER, matmul, sketches, wgmma_sketches

SEEDS = some(range(36))


@dataclass(frozen=True)
class Drawn:
    """A schedule for all sizes, its program and its text."""

    state: State
    lowered: Lowered
    source: CudaSource


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> Mapping[int, Drawn]:
    """Some programs, by seed; others need a number."""
    base, found = session_seed(request.config), dict[int, Drawn]()
    for seed in SEEDS:
        rng = np.random.default_rng([base, seed])
        made = random_launched_program(rng, TYPES, TARGET, (ANSOR_CUDA, CUDA)[seed % 2])
        if made is not None:
            found[seed] = Drawn(*made, emit_cuda(made[1].run, TARGET, f"k{seed}"))
    assert len(found) > len(SEEDS) // 2
    return found


@pytest.fixture(scope="module")
def emulated(drawn: Mapping[int, Drawn], tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    sources = [(f"k{seed}", one.lowered.run, one.source) for seed, one in drawn.items()]
    return Emulated(sources, tmp_path_factory.mktemp("dimensions"))


@needs_compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_one_program_computes_its_definition_at_every_size(
    seed: int, drawn: Mapping[int, Drawn], emulated: Emulated
) -> None:
    one, rng = drawn.get(seed), np.random.default_rng(seed)
    if one is None:
        return
    proof = proof_of(one.lowered)
    assert not proof.refuted, proof.refuted[0]
    for sizes in tried(one.state.definition.dims, rng):
        check(one, sizes, f"k{seed}", emulated, rng)
        assert_grids(one, sizes)


def tried(dims: tuple[Dim, ...], rng: np.random.Generator) -> list[Sizes]:
    """The least sizes, the largest, and others."""
    return [{d: d.low for d in dims}, {d: d.high for d in dims}, drawn_sizes(dims, rng)]


def check(
    one: Drawn, sizes: Sizes, symbol: str, emulated: Emulated, rng: np.random.Generator,
    *, interprets: bool = True,
) -> None:  # fmt: skip
    """Compare what the interpreter and the text compute with the definition at *sizes*."""
    dag = dag_at(one.state.definition, sizes)
    reference = Reference(dag, random_values(dag, rng))
    if reference.reason:
        return
    data = dict(reference.data)

    def text(program: Program, arrays: list[Array]) -> None:
        if program is one.lowered.bind:
            run_program(program, arrays)
            return
        emulated(symbol, arrays, [sizes[d] for d in program.dims])  # type: ignore[misc]

    if interprets:
        here = Lowered(program_at(one.lowered.run, sizes), one.lowered.bind)
        interpreted = run_lowered(here, data, run_program)
        assert max(reference.shares(interpreted, dag)) <= 1, (sizes, one.state.history)
    found = run_lowered(one.lowered, data, text, sizes=sizes)
    assert max(reference.shares(found, dag)) <= 1, (sizes, one.state.history)


def assert_grids(one: Drawn, sizes: Sizes) -> None:
    """The launches of a call with *sizes* are those of the program at *sizes*."""
    alone = emit_cuda(program_at(one.lowered.run, sizes), TARGET, "alone").plan.launches
    launches = one.source.plan.at([sizes[d] for d in one.source.plan.dims])  # type: ignore[misc]
    assert [launch.grid for launch in launches] == [launch.grid for launch in alone]


def product(n: Extent, k: Extent, kind: str = "float16") -> ComputeDAG:
    a, b = placeholder((n, k), kind, name="A"), placeholder((k, 64), kind, name="B")
    r = reduce_axis(k, name="k")
    return ComputeDAG.of([a, b, compute((n, 64), lambda i, j: sum_over(
        a[i, r].astype("float32") * b[r, j].astype("float32"), axis=r), name="C")])  # fmt: skip


def tiled(dag: ComputeDAG, rows: int = 8) -> State:
    """Blocks of rows, a thread for each column."""
    state, (block, _) = State.initial(dag).split("C", "i", (rows,))
    return state.bind("C", block, "blockIdx.x").bind("C", "j", "threadIdx.x")


@needs_compiler
@needs_nvrtc
@pytest.mark.parametrize("groups", [False, True])
def test_tensor_cores_multiply_any_number_of_rows(
    groups: bool, rng: np.random.Generator, tmp_path: Path
) -> None:
    at_a_size = matmul("float16", 128, 64, 96)
    sketch = (wgmma_sketches(at_a_size, rng) if groups else sketches(at_a_size, rng))[0]
    table = sketch.sample(32, rng)
    history = sketch.resolve(table[sketch.valid(table)][0]).history
    state = State.replay(product(dim("n", 0, 70), 96), history)
    lowered, target = lower(state), HOPPER if groups else GPU
    assert proof_of(lowered).is_decided
    code = build_cuda(lowered.run, target, symbol="product")
    assert code.cubin[:4] == b"\x7fELF"
    source = emit_cuda(lowered.run, target, "product")
    emulated = Emulated([("product", lowered.run, source)], tmp_path)
    one = Drawn(state, lowered, source)
    for n in (0, 1, 37, 70):
        check(
            one, dict.fromkeys(state.definition.dims, n), "product", emulated, rng, interprets=n < 2
        )


@needs_nvrtc
def test_sizes_are_parameters_of_a_cubin() -> None:
    code = build_cuda(
        lower(tiled(product(dim("n", 0, 999), dim("k", 0, 64)))).run, TARGET, symbol="p"
    )
    assert [a.place for a in code.plan.launches[0].arguments] == ["parameter"] * 3 + ["size"] * 2
    assert code.plan.at([17, 3])[0].grid == (3, 1, 1) and not code.plan.at([0, 3])
    assert code.resources[0].spilled_bytes == 0


def test_a_size_beyond_an_int_is_wide() -> None:
    n = dim("n", 1, 1 << 33)
    x = placeholder((n,), "int8", name="x")
    state, (block, inner) = State.initial(
        [x, compute((n,), lambda i: x[i] + x[n - 1 - i], name="y")]
    ).split("y", "i", (1024,))
    state = state.bind("y", block, "blockIdx.x").bind("y", inner, "threadIdx.x")
    text = emit_cuda(lower(state).run, TARGET, "wide").kernels
    assert "long long n /* n=1..8589934592 */" in text
    assert "if ((long long)i_0 * 1024 + i_1 < n)" in text


def test_each_part_of_the_sizes_has_kernels_of_its_own() -> None:
    few, many = dim("n", 0, 7), dim("n", 8, 500)
    parts = [tiled(product(few, 16), 1), tiled(product(many, 16))]
    whole = product(dim("n", 0, 500), 16)
    run = dispatched(whole, [(s.definition.dims[0], lower(s)) for s in parts]).run
    source = emit_cuda(run, TARGET, "parts")
    assert "blocks of 64 threads, if 8 - n > 0" in source.kernels.replace("-n + 8", "8 - n")
    assert {n: [x.grid[0] for x in source.plan.at([n])] for n in (0, 1, 7, 8, 9, 500)} == {
        0: [], 1: [1], 7: [7], 8: [1], 9: [2], 500: [63],
    }  # fmt: skip
