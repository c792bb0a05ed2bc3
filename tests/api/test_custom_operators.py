"""The example of an operator of one's own, as a plugin of the command line and in Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import ansorpy as ap
from ansorpy.api.arguments import LookupArguments
from ansorpy.api.evaluate.engine import Ours
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.main import main
from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.custom import CUSTOM
from ansorpy.size_ranges import size_of

Array = NDArray[Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_operator.py"
NAME = "com.example.GatedNorm"


@pytest.fixture(autouse=True)
def no_operator_stays() -> Iterator[None]:
    yield
    if NAME in CUSTOM:
        CUSTOM.remove(NAME)


def expected(x: Array, weight: Array) -> Array:
    h = x @ weight
    root = np.sqrt((h * h).mean(-1, keepdims=True) + 0.01)
    return np.asarray(h / root / (1 + np.exp(-x)))


def test_the_example_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_plugins([EXAMPLE])
    network = sys.modules["ansorpy_plugin_custom_operator"].network()
    path = tmp_path / "gated.onnx"
    onnx.save(network, path)
    records = ["--db", str(tmp_path / "tune.db")]
    same = ["--threads", "1", "--dim", "rows=7", *records]
    library = tmp_path / "gated.so"
    options = ["--effort", "none", "-o", str(library), *same]
    assert main(["compile", str(path), "--plugin", str(EXAMPLE), *options]) == 0
    assert main(["show", str(path), "--plugin", str(EXAMPLE), *same]) == 0
    assert capsys.readouterr().out.endswith(f" --plugin {EXAMPLE}\n")
    assert main(["report", str(path), "--plugin", str(EXAMPLE), *same]) == 0
    model = ap.load(library)
    weight = onnx.numpy_helper.to_array(network.graph.initializer[0])
    x = np.random.default_rng(1).standard_normal((7, 24)).astype(np.float32)
    (y,) = model.run(None, {"x": x})
    np.testing.assert_allclose(y, expected(x, weight), rtol=0, atol=1e-5)
    arguments: LookupArguments = {
        "db": str(tmp_path / "tune.db"), "threads": 1, "dims": {"rows": size_of(7, "rows")},
    }  # fmt: skip
    timed = Ours(str(path), arguments=arguments, plugins=[str(EXAMPLE)])  # as bench does
    assert timed.outputs()["y"].shape == y.shape


def test_plugins_may_be_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_operators.py").write_text(EXAMPLE.read_text())
    (tmp_path / "wrong_operators.py").write_text("import absent_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins(["own_operators"])
    assert NAME in CUSTOM
    with pytest.raises(UsageError, match="there is no plugin no_operators"):
        load_plugins(["no_operators"])
    with pytest.raises(UsageError, match="wrong_operators failed: No module named 'absent_module'"):
        load_plugins(["wrong_operators"])
