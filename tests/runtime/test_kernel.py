from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export
from ansorpy.runtime.in_memory import InMemory, load_plan
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.model import load
from ansorpy.runtime.planner import plan_kernel
from ansorpy.target import Target
from tests.codegen.c.compiled import needs_cc
from tests.runtime import programs

Rng = np.random.Generator
HOST = Target.host()


def dense() -> Kernel:
    task = programs.task_of(programs.dense(), "dense", programs.packed)
    return Kernel(task, target=HOST, threads=2, name="dense")


def tail() -> Kernel:
    return Kernel(programs.task_of(programs.tail(), "tail"), target=HOST, threads=1, name="tail")


def test_call_with_bound_constants(rng: Rng) -> None:
    w, b = programs.constants(rng)
    x = programs.feed(rng)
    kernel = dense()
    assert kernel.bind(W=w, B=b) is kernel
    w_before = w.copy()
    w[...] = np.nan  # bound constants are copies
    for threads in (None, 1, 2, 5):
        result = kernel(x, threads=threads)
        assert isinstance(result, np.ndarray)
        expected = programs.expected_dense(x, w_before, b)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_constants_made_from_constants(rng: Rng, tmp_path: Path) -> None:
    """``bind`` has an intermediate result of its own; packed here, and by an exported library."""
    dag = programs.constant_chain()
    task = programs.task_of(dag, "chain")
    _, b = programs.constants(rng)
    x = rng.standard_normal((programs.M,), dtype=np.float32)
    expected = x * ((2 * b + 1) + b)
    np.testing.assert_allclose(
        Kernel(task, target=HOST, threads=1).bind(B=b)(x), expected, rtol=1e-5
    )
    plan = plan_kernel(task, {"B": b}, target=HOST, threads=1)
    library = load(export(plan, tmp_path / "chain.so"))
    np.testing.assert_allclose(library.run(None, {"X": x})[0], expected, rtol=1e-5)


def test_code_compiled_under_other_names(rng: Rng) -> None:
    """A database gives code of an equal definition: callers keep their own names."""
    kept, mine = programs.dense("WBX"), programs.dense()  # the same letters in other roles
    task = programs.task_of(kept, "dense", lambda s: s.pack("P", "B"))
    task = CompiledTask.of(mine, task.built, compiled_from=kept)
    kernel = Kernel(task, target=HOST, threads=1)
    w, b = programs.constants(rng)
    x = programs.feed(rng)
    expected = programs.expected_dense(x, w, b)
    np.testing.assert_allclose(kernel.bind(W=w, B=b)(x), expected, rtol=1e-4, atol=1e-5)
    assert repr(kernel).startswith("<Kernel kernel: 'X' -> 'Y'")


def test_binding_again_replaces_the_constants(rng: Rng) -> None:
    kernel = dense()
    x = programs.feed(rng)
    for _ in range(2):
        w, b = programs.constants(rng)
        result = kernel.bind(W=w, B=b)(x)
        expected = programs.expected_dense(x, w, b)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_several_outputs_and_out(rng: Rng) -> None:
    kernel = tail()
    y = rng.standard_normal((programs.N, programs.M), dtype=np.float32)
    total, plus = kernel(y)
    np.testing.assert_allclose(total, y.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(plus, y + 1)
    mine = (np.empty_like(total), np.empty_like(plus))
    given = kernel(y, out=mine)
    assert all(a is b for a, b in zip(given, mine, strict=True))
    np.testing.assert_array_equal(mine[0], total)


def test_calls_from_several_python_threads(rng: Rng) -> None:
    kernel = tail()
    arrays = [rng.standard_normal((programs.N, programs.M), dtype=np.float32) for _ in range(8)]

    def work(y: programs.Floats) -> None:
        for _ in range(200):
            np.testing.assert_array_equal(kernel(y)[1], y + 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, arrays))


FIRST_CALLS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import ansorpy as ap
a = ap.placeholder((64, 64), name="a")
c = ap.compute((64, 64), lambda i, j: a[i, j] + 1.0, name="c")
kernel = ap.build(ap.State.initial(ap.ComputeDAG([c], [a])).parallel("c", ["i"]), threads=3)
with ThreadPoolExecutor(4) as pool:
    for result in pool.map(kernel, [np.ones((64, 64), np.float32)] * 64):
        assert (result == 2).all()
"""


def test_the_first_calls_of_a_process_may_come_from_several_threads() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FIRST_CALLS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_threads_that_call_first_share_the_loaded_code(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[InMemory] = []

    def counted(plan: ExecutionPlan, name: str) -> InMemory:
        time.sleep(0.05)  # the other threads arrive meanwhile
        loads.append(load_plan(plan, name))
        return loads[-1]

    monkeypatch.setattr("ansorpy.runtime.kernel.load_plan", counted)
    y = np.ones((programs.N, programs.M), np.float32)
    with ThreadPoolExecutor(4) as pool:
        for total, _ in pool.map(tail(), [y] * 4):
            np.testing.assert_array_equal(total, y.sum(axis=1))
    assert len(loads) == 1


def test_a_prepared_call(rng: Rng) -> None:
    w, b = programs.constants(rng)
    x, kernel = programs.feed(rng), dense().bind(W=w, B=b)
    out = np.full(kernel.outputs[0].shape, np.nan, np.float32)
    run = kernel.prepare(x, out=out)
    kernel.bind(W=w + 1, B=b)  # what was prepared goes on with the constants it was made with
    for _ in range(2):
        x[...] = rng.standard_normal(x.shape, dtype=np.float32)
        run()
        expected = programs.expected_dense(x, w, b)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="takes .X., in this order; got 2 arrays"):
        kernel.prepare(x, x, out=out)
    with pytest.raises(
        UsageError, match="threads must be a whole number from 1 to 2147483647, got "
    ):
        kernel.prepare(x, out=out, threads=0)


def test_large_results_are_the_callers_for_as_long_as_they_are_kept() -> None:
    x = placeholder((1100, 600), name="X")
    more = compute((1100, 600), lambda i, j: x[i, j] + 1.0, name="Y")
    kernel = Kernel(programs.task_of(ComputeDAG([more], [x]), "more"), target=HOST, threads=1)
    given = [np.full((1100, 600), value, np.float32) for value in range(6)]
    kept = [kernel(array) for array in given[:3]]
    for array in given:
        np.testing.assert_array_equal(kernel(array), array + 1)
    for array, result in zip(given, kept, strict=False):
        np.testing.assert_array_equal(result, array + 1)


def test_new_arrays_in_the_place_of_old_ones() -> None:
    """Remembered addresses belong to arrays, not to identities that Python uses again."""
    kernel = tail()
    for value in range(300):
        y = np.full((programs.N, programs.M), value, np.float32)
        assert kernel(y)[1][0, 0] == value + 1


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.INT32, DType.INT8, DType.BFLOAT16])
def test_other_element_types(dtype: DType, rng: Rng) -> None:
    a = placeholder((3, 7), dtype, name="a")
    out = compute((3, 7), lambda i, j: a[i, j] + a[i, j], name="twice")
    kernel = Kernel(programs.task_of(ComputeDAG([out], [a]), "twice"), target=HOST, threads=1)
    values = rng.integers(-20, 20, (3, 7)).astype(dtype.numpy)
    result = kernel(values)
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype.numpy
    np.testing.assert_array_equal(result, values + values)


@pytest.mark.parametrize("target", [None, pytest.param("c", marks=needs_cc)])
def test_axes_have_names_of_any_script(target: str | None, rng: Rng) -> None:
    x, k = placeholder((5, 8), name="größe"), ap.reduce_axis(8, name="länge")
    names = ["höhe", "列"]
    y = compute((5, 3), lambda i, _: ap.sum(x[i, k], axis=k), names=names, name="y")
    kernel = ap.build([x, y], target=target)
    given = rng.standard_normal((5, 8), dtype=np.float32)
    found = kernel(given)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found[:, 2], given.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_a_constant_may_be_called_self(rng: Rng) -> None:
    x, w = placeholder((7,), name="x"), placeholder((7,), name="self", constant=True)
    kernel = ap.build([x, w, compute((7,), lambda i: x[i] * w[i], name="y")])
    factors, given = rng.standard_normal((2, 7), dtype=np.float32)
    np.testing.assert_array_equal(kernel.bind(self=factors)(given), given * factors)


def test_description() -> None:
    kernel = dense()
    assert kernel.median_ms == 2.0
    assert "j.0" in kernel.program
    assert repr(kernel) == "<Kernel dense: 'X' -> 'Y', 2.000 ms>"
    assert kernel._repr_html_().count("2.000 ms") == 1
    assert [port.name for port in kernel.constants] == ["W", "B"]


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_machine_code_is_not_copied(copied: Callable[[Kernel], object]) -> None:
    with pytest.raises(UsageError, match="(?s)<Kernel tail: .*neither copied nor pickled.*ap.load"):
        copied(tail())


def test_wrong_constants(rng: Rng) -> None:
    w, b = programs.constants(rng)
    kernel = dense()
    x = programs.feed(rng)
    with pytest.raises(UsageError, match=r"(?s)not bound.*call kernel.bind\(W=array, B=array\)"):
        kernel(x)
    with pytest.raises(UsageError, match="constants B are not bound"):
        kernel.bind(W=w)
    with pytest.raises(UsageError, match="'Z' is not a constant of this kernel, which takes W, B"):
        kernel.bind(W=w, B=b, Z=b)
    with pytest.raises(UsageError, match="takes none; .*constant=True"):
        tail().bind(Y=w)
    with pytest.raises(UsageError, match="constant 'W' takes 12x32 of float32, got 32x12"):
        kernel.bind(W=w.T, B=b)


def test_wrong_arguments(rng: Rng) -> None:
    kernel = tail()
    y = np.zeros((programs.N, programs.M), np.float32)
    with pytest.raises(UsageError, match="tail takes 'Y', in this order; got 2 arrays"):
        kernel(y, y)
    with pytest.raises(UsageError, match="input 'Y' takes 5x32 of float32, got 5x33 of float32"):
        kernel(np.zeros((5, 33), np.float32))
    with pytest.raises(UsageError, match=r'(?s)got 5x32 of int32.*np.asarray\(array, "float32"\)'):
        kernel(y.astype(np.int32))
    with pytest.raises(UsageError, match="must be a numpy array, got list"):
        kernel([[1.0]])
    with pytest.raises(UsageError, match="'Y' is not contiguous"):
        kernel(np.zeros((programs.M, programs.N), np.float32).T)
    shifted = np.frombuffer(b"0" + y.tobytes(), np.uint8)[1:].view(np.float32).reshape(y.shape)
    with pytest.raises(UsageError, match="'Y' is not aligned"):
        kernel(shifted)
    kernel(shifted.copy())
    with pytest.raises(UsageError, match=r"has 2 outputs \('S', 'T'\), but out= has 1"):
        kernel(y, out=y)
    sums = np.zeros(programs.N, np.float32)
    for wrong in (y.astype(np.float64), np.zeros((programs.M, programs.N), np.float32).T):
        with pytest.raises(
            UsageError, match=r'(?s)output .T..*pass np.empty\(\(5, 32\), "float32"\)'
        ):
            kernel(y, out=(sums, wrong))
    with pytest.raises(UsageError, match="'T' shares memory"):
        kernel(y, out=(np.zeros(programs.N, np.float32), y))
    for threads in (-1, 1.5, "2", (1 << 32) + 1):
        with pytest.raises(
            UsageError, match="threads must be a whole number from 1 to 2147483647, got "
        ):
            kernel(y, threads=threads)  # type: ignore[arg-type]


def test_a_kernel_for_another_machine(rng: Rng) -> None:
    arm = Target.parse("cortex-a76")
    task = programs.task_of(programs.tail(), "tail", target=arm)
    with pytest.raises(MissingDependency, match="cortex-a76.*cannot run"):
        Kernel(task, target=arm, threads=1)(np.zeros((programs.N, programs.M), np.float32))
