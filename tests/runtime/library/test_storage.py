"""Constants in a library: ready to read, or packed by ``init`` where that is smaller."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.graph.memory import ArenaPlan
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.builders import sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.entry.module import emit_entry
from ansorpy.runtime.entry.source import EntrySource
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.storage import Contents, stored
from ansorpy.runtime.model import load
from ansorpy.runtime.planner import plan_kernel, plan_network
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.runtime import programs

Rng = np.random.Generator
ROWS, COLUMNS = 24, 37


def spread(rows: int = ROWS) -> ComputeDAG:
    """``X * E`` with ``E[i, j] = 2 B[(i + j) % COLUMNS]``: made in two steps, and larger than B."""
    x = placeholder((rows, COLUMNS), name="X")
    b = placeholder((COLUMNS,), name="B", constant=True)
    double = compute((COLUMNS,), lambda j: b[j] * 2.0, name="D")
    made = compute((rows, COLUMNS), lambda i, j: double[(i + j) % COLUMNS], name="E")
    return ComputeDAG(
        [compute((rows, COLUMNS), lambda i, j: x[i, j] * made[i, j], name="Y")], [x, b]
    )


def expected(x: programs.Floats, b: programs.Floats) -> programs.Floats:
    return x * np.stack([np.roll(2 * b, -row) for row in range(ROWS)])


def plain() -> ComputeDAG:
    """``X + B``, which reads B as it is."""
    x = placeholder((ROWS, COLUMNS), name="X")
    b = placeholder((COLUMNS,), name="B", constant=True)
    return ComputeDAG([compute((ROWS, COLUMNS), lambda i, j: x[i, j] + b[j], name="Y")], [x, b])


def network(dags: Sequence[ComputeDAG], b: programs.Floats) -> Network:
    """Calls of *dags* side by side, all with the constant *b*."""
    tensors = [TensorInfo(f"y{n}", (ROWS, COLUMNS), DType.FLOAT32) for n in range(len(dags))]
    x = TensorInfo("x", (ROWS, COLUMNS), DType.FLOAT32)
    calls = tuple(
        Call(t.name, dag, ("x",), {"B": b}, (t.name,)) for t, dag in zip(tensors, dags, strict=True)
    )
    values = {t.name: t for t in (x, *tensors)}
    return Network((x,), tuple(tensors), values, calls, ArenaPlan({}, 0))


def tasks(net: Network) -> dict[str, CompiledTask]:
    return {w.key: programs.task_of(w.dag, f"task{n}") for n, w in enumerate(net.workloads())}


def plan(net: Network) -> ExecutionPlan:
    return plan_network(net, tasks(net), target=Target.host(), threads=2)


def test_init_makes_what_is_larger_bit_by_bit(rng: Rng, tmp_path: Path) -> None:
    b = rng.standard_normal(COLUMNS, dtype=np.float32)
    x = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    kernel = Kernel(programs.task_of(spread(), "spread"), target=Target.host(), threads=2)
    kernel.bind(B=b)
    want = kernel(x)
    np.testing.assert_allclose(want, expected(x, b), rtol=1e-6)
    b[:] = 0  # the kernel has a copy
    sizes = {}
    for pack in Pack:
        path = kernel.export(tmp_path / f"{pack.name}.so", pack)
        [got] = load(path).run(None, {"X": x})
        np.testing.assert_array_equal(got, want)
        whole = stored(plan(network([spread()], b)), pack, "net")
        contents = Contents("net_constants")
        contents.add(whole)
        sizes[pack] = contents.size
    assert sizes == {Pack.AT_INIT: 192, Pack.IN_FILE: 3584}


def test_a_constant_that_is_read_as_it_is_serves_packing_too(rng: Rng, tmp_path: Path) -> None:
    b = rng.standard_normal(COLUMNS, dtype=np.float32)
    x = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    net = network([spread(), plain()], b)
    whole = plan(net)
    assert (len(whole.packs), whole.raw) == (1, ())
    model = CompiledModel.of(net, tasks(net), target=Target.host(), threads=2)
    for found in (model, load(model.export(tmp_path / "net.so"))):
        first, second = found.run(None, {"x": x})
        np.testing.assert_allclose(first, expected(x, b), rtol=1e-6)
        np.testing.assert_array_equal(second, x + b)


def test_equal_constants_are_stored_once(rng: Rng) -> None:
    b = rng.standard_normal(COLUMNS, dtype=np.float32)
    contents = Contents("net_constants")
    places = [contents.add(plan(network([plain()], array))) for array in (b, b.copy(), -b)]
    assert places[0] == places[1] != places[2]
    assert contents.size == 2 * 192


@pytest.mark.parametrize(("tile", "is_left"), [(20, True), (9, False)])
def test_a_little_padding_is_stored(tile: int, is_left: bool, rng: Rng) -> None:
    """It saves too little to cost each process memory of its own: 32 columns become 36."""
    x = placeholder((4, programs.K), name="X")
    w = placeholder((programs.K, 32), name="W", constant=True)
    k = reduce_axis(programs.K, name="k")
    y = compute((4, 32), lambda i, j: sum(x[i, k] * w[k, j], axis=k), name="Y")

    def packed(state: State) -> State:
        state, _ = state.split("Y", "j", (tile,))
        return state.reorder("Y", ["j.0", "i", "k", "j.1"]).pack("Y", "W")

    task = programs.task_of(ComputeDAG([y], [x, w]), "padded", packed)
    weights = rng.standard_normal((programs.K, 32), dtype=np.float32)
    whole = plan_kernel(task, {"W": weights}, target=Target.host(), threads=1)
    left = stored(whole, Pack.AT_INIT, "net").packs
    assert (len(whole.packs), len(left)) == (1, is_left)


def test_what_cannot_be(rng: Rng, tmp_path: Path) -> None:
    kernel = Kernel(
        programs.task_of(programs.tail(), "tail", target=Target.parse("c")),
        target=Target.parse("c"),
        threads=1,
    )
    said = r"(?s)for c do not pack their constants at init.*--pack at-init \(pack= in Python\)"
    with pytest.raises(UsageError, match=said):
        kernel.export(tmp_path / "net.c", Pack.AT_INIT)
    arm = Target.parse("aarch64-linux-gnu")
    there = plan_network(network([], np.zeros(1, np.float32)), {}, target=arm, threads=1)
    with pytest.raises(UsageError, match="unknown pack 'later'"):
        kernel.export(tmp_path / "net.so", "later")
    with pytest.raises(UsageError, match="cannot be packed on this machine"):
        export(there, tmp_path / "net.so", Pack.IN_FILE)


FORKS = """
#include "net.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int used(void) {
    static float x[5 * 12], out[3][5 * 32];
    static char context[1 << 16];
    net_tensor in = {x, {5, 12}}, outs[3] = {{out[0], {5, 32}}, {out[1], {5}}, {out[2], {5, 32}}};
    const int status = net_init();
    return status ? status : net_run(context, &in, outs, 2);
}

static int is_forked;

/* init asks for memory to pack in. */
void *aligned_alloc(size_t alignment, size_t size) {
    int status;
    void *memory;
    if (!is_forked++) {
        if (!fork()) {
            alarm(20);
            _exit(used());
        }
        if (wait(&status) < 0 || status) _exit(90);
    }
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

int main(void) { return used() || !is_forked; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_child_that_is_forked_during_init_waits_for_no_thread_of_its_parent(
    rng: Rng, tmp_path: Path
) -> None:
    programs.model(rng)[0].export(tmp_path / "net.a")
    (tmp_path / "main.c").write_text(FORKS)
    command = ["cc", "main.c", "net.a", "-lm", "-pthread", "-o", "forks"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./forks"], cwd=tmp_path, check=True)


def test_nothing_follows_the_end_of_a_block(rng: Rng) -> None:
    b = rng.standard_normal(COLUMNS, dtype=np.float32)
    whole = stored(plan(network([spread()], b)), Pack.AT_INIT, "net")
    text = emit_entry(EntrySource(whole, "net", Contents("net_constants").add(whole)))
    assert "@pack(" in text
    for line, after in pairwise(text.splitlines()):
        if line.startswith(("  ret ", "  br ")):
            assert after == "}" or after.endswith(":"), after
