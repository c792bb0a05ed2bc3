"""Results over operands, in machine code: a smaller arena, the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.builders import exp, maximum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.footprint import Footprint
from ansorpy.schedule.stage import Tail
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.runtime.programs import task_of

N, M = 13, 40
BLOCK = -(-N * M * 4 // 64) * 64


def steps(rows: Extent) -> list[ComputeDAG]:
    """``x - 1``, ``exp(x) * x``, ``max(x, 0) + x``, each of *rows* rows."""
    bodies: list[Callable[[Expr], Expr]] = [
        lambda e: e - 1.0, lambda e: exp(e) * e, lambda e: maximum(e, 0.0) + e
    ]  # fmt: skip

    def one(body: Callable[[Expr], Expr]) -> ComputeDAG:
        x = placeholder((rows, M), name="X")
        return ComputeDAG([compute((rows, M), lambda i, j: body(x[i, j]), name="Y")], [x])

    return [one(body) for body in bodies]


def model(tile: int, tail: Tail, rows: Extent = N) -> CompiledModel:
    names = ["x", "first", "second", "y"]
    pairs = zip(names, names[1:], strict=False)
    calls = tuple(
        Call(made, dag, (given,), {}, (made,))
        for (given, made), dag in zip(pairs, steps(rows), strict=True)
    )
    values = {name: TensorInfo(name, (rows, M), DType.FLOAT32) for name in names}
    network = Network((values["x"],), (values["y"],), values, calls).with_arena()

    def tiled(state: State) -> State:
        if not tile:
            return state.vectorize("Y", ["j"]).parallel("Y", ["i"])
        state, (outer, _) = state.split("Y", "i", (tile,), tail=tail)
        return state.vectorize("Y", ["j"]).parallel("Y", [outer])

    tasks: dict[str, CompiledTask] = {
        call.key: task_of(call.dag, f"step{number}", tiled) for number, call in enumerate(calls)
    }
    return CompiledModel.of(network, tasks, target=Target.host(), threads=2)


@pytest.mark.parametrize(("tile", "tail", "blocks"), [(5, "shift", 2), (13, "guard", 1)])
def test_a_chain_works_in_one_place_unless_it_computes_twice(
    tile: int, tail: Tail, blocks: int
) -> None:
    compiled = model(tile, tail)
    x = np.random.default_rng(0).standard_normal((N, M)).astype(np.float32)
    second = np.exp(x - 1) * (x - 1)
    [y] = compiled.run(None, {"x": x})
    np.testing.assert_allclose(y, np.maximum(second, 0) + second, rtol=1e-5, atol=1e-6)
    found = compiled.footprint
    assert found is not None and found.arena == blocks * BLOCK
    assert found.ports == 2 * N * M * 4 and found.constants == 0


def test_sized_values_work_in_one_place() -> None:
    compiled = model(0, "guard", dim("n", 0, N))
    assert compiled.footprint.arena == BLOCK
    for n in (0, 1, 7, N):
        x = np.random.default_rng(n).standard_normal((n, M)).astype(np.float32)
        second = np.exp(x - 1) * (x - 1)
        [y] = compiled.run(None, {"x": x})
        np.testing.assert_allclose(y, np.maximum(second, 0) + second, rtol=1e-5, atol=1e-6)


def test_a_footprint_in_words() -> None:
    mib = 1 << 20
    known = Footprint(5 * mib, 2 * mib, mib // 2, mib // 4)
    assert known.peak == 7.75 * mib
    assert str(known) == (
        "7.75 MiB at the peak of a run: constants 5 MiB, arena 2 MiB, "
        "workspace 512 KiB, inputs and outputs 256 KiB"
    )
    planned = Footprint(5 * mib, 2 * mib, None, 0)
    assert planned.peak is None and "before compilation: constants 5 MiB" in str(planned)
