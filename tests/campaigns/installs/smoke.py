"""What an installed ansorpy can do: ``python -I smoke.py``, in an empty folder, without a checkout.

Needs what a plain install has, and a linker.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import ansorpy as ap

NET, LIBRARY = "net.onnx", "net.so"


def main() -> None:
    """Raise what goes wrong."""
    assert Path(ap.__file__).is_relative_to(sys.prefix), ap.__file__
    assert ap.__version__ == metadata.version("ansorpy")
    assert command("--version").split()[-1] == ap.__version__
    command("doctor")
    tune_an_operator()
    compile_a_network()


def command(*arguments: str) -> str:
    """What ``ansorpy`` prints, which must succeed."""
    line = [str(Path(sys.executable).with_name("ansorpy")), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def tune_an_operator() -> None:
    """A product of matrices, by a search with the learned cost model."""
    a, b = (ap.placeholder((96, 96), name=name) for name in "AB")
    k = ap.reduce_axis(96, name="k")
    c = ap.compute((96, 96), lambda i, j: ap.sum(a[i, k] * b[k, j], axis=k), name="C")
    kernel = ap.tune([a, b, c], trials=24, db="tune.db")
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((96, 96)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(kernel(x, y), x @ y, rtol=1e-4, atol=1e-4)


def network() -> onnx.ModelProto:
    """A convolution, a maximum with zero, a mean over the image and a dense layer."""
    rng = np.random.default_rng(0)
    weights = {"kernel": (8, 3, 3, 3), "bias": (8,), "dense": (8, 5)}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "kernel", "bias"], ["conv"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["conv"], ["relu"]),
            helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
            helper.make_node("Flatten", ["pool"], ["flat"]),
            helper.make_node("MatMul", ["flat", "dense"], ["scores"]),
        ],
        "net",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, (1, 3, 32, 32))],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, (1, 5))],
        [
            numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compile_a_network() -> None:
    """From a file to a library, by the command line; then called from Python."""
    onnx.save(network(), NET)
    command("compile", NET, "-o", LIBRARY, "--trials", "8", "--db", "tune.db")
    assert Path(LIBRARY).with_suffix(".h").is_file()
    command("verify", LIBRARY, "--model", NET, "--against", "reference")
    command("verify", "--static", LIBRARY)
    command("run", LIBRARY, "--save", "out.npz")
    with np.load("out.npz") as saved:
        assert saved["scores"].shape == (1, 5)
    command("export", NET, "-o", "net.c", "--emit", "c", "--db", "tune.db")
    [scores] = ap.load(LIBRARY).run(None, {"image": np.ones((1, 3, 32, 32), np.float32)})
    assert np.isfinite(scores).all()


if __name__ == "__main__":
    main()
