"""Kernels of 8- and 16-bit elements compute the same in memory, from a library, and called by C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.ir.builders import exp, maximum, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret.dag import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.model import load
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.runtime import programs

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

HERE = Path(__file__).parent
ROWS, K, COLUMNS = 5, 19, 21


def definition(dtype: DType) -> ComputeDAG:
    """Integers: a product summed as int32.  16-bit floats: the sum's exponential."""
    x = placeholder((ROWS, K), dtype, name="x")
    w = placeholder((K, COLUMNS), dtype, name="w", constant=True)
    k = reduce_axis(K, name="k")
    wide = DType.FLOAT32 if dtype.is_float else DType.INT32
    product = compute(
        (ROWS, COLUMNS),
        lambda i, j: sum(x[i, k].astype(wide) * w[k, j].astype(wide), axis=k),
        name="p",
    )
    if dtype.is_float:
        last = compute(product.shape, lambda i, j: exp(product[i, j]).astype(dtype), name="y")
    else:
        last = compute(product.shape, lambda i, j: maximum(product[i, j], 0), name="y")
    return ComputeDAG([last], [x, w])


def values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.generic]:
    numbers = rng.integers(-8 if dtype.is_signed else 0, 9, shape)
    return np.asarray(numbers / 32 if dtype.is_float else numbers * 15).astype(dtype.numpy)


def scheduled(state: State) -> State:
    state, _ = state.split("p", "j", (16,), tail="shift")
    state = state.reorder("p", ["i", "j.0", "k", "j.1"])
    return state.vectorize("p", ["j.1"])


def from_c(folder: Path, x: NDArray[np.generic], like: NDArray[np.generic]) -> NDArray[np.generic]:
    command = [
        "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", str(HERE / "narrow.c"),
        "-o", str(folder / "narrow"), str(folder / "net.so"), "-Wl,-rpath,$ORIGIN",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    x.tofile(folder / "in")
    files = [str(folder / name) for name in ("narrow", "in", "out")]
    subprocess.run([*files, str(x.nbytes), str(like.nbytes)], check=True)
    return np.fromfile(folder / "out", np.uint8)


@pytest.mark.parametrize(
    "dtype", [DType.FLOAT16, DType.BFLOAT16, DType.INT8, DType.UINT8], ids=lambda d: d.value
)
def test_a_library_of_narrow_elements(
    dtype: DType, rng: np.random.Generator, tmp_path: Path
) -> None:
    dag = definition(dtype)
    x, w = values(dtype, (ROWS, K), rng), values(dtype, (K, COLUMNS), rng)
    task = programs.task_of(dag, "net", scheduled)
    kernel = Kernel(task, target=Target.host(), threads=1, name="net").bind(w=w)
    here = kernel(x)
    assert isinstance(here, np.ndarray)
    [want] = run_dag(dag, {"x": x, "w": w})
    rtol = {DType.FLOAT16: 2e-3, DType.BFLOAT16: 1e-2}.get(dtype, 0.0)
    np.testing.assert_allclose(here.astype(float), want.astype(float), rtol=rtol, atol=0)
    kernel.export(tmp_path / "net.so")
    [loaded] = load(tmp_path / "net.so").run(None, {"x": x})
    assert loaded.dtype == here.dtype
    np.testing.assert_array_equal(loaded.view(np.uint8), here.view(np.uint8))
    np.testing.assert_array_equal(from_c(tmp_path, x, here), here.view(np.uint8).ravel())
