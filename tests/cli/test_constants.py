"""The verbs on a network one of whose inputs must be known: with --const, from records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import ArrayLike

from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.cli import peers
from ansorpy.cli.main import main
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import Policy
from ansorpy.evaluation.engines.protocol import open_peer
from ansorpy.runtime.model import load
from tests.frontend.test_pinned import summed

pytestmark = pytest.mark.usefixtures("short_turns", "engines_here")
CONST = ["--const", "axes=[0]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("constants")
    onnx.save(summed(), folder / "net.onnx")
    return folder


def test_verbs_take_values_of_inputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, library = str(folder / "net.onnx"), str(folder / "net.so")
    records = ["--db", str(folder / "t.db"), "--threads", "1"]
    assert main(["compile", network, "-o", library, "--effort", "none", *CONST, *records]) == 0
    said = capsys.readouterr().out
    assert f"--model {network} --against onnxruntime --threads 1 --const 'axes=[0]'\n" in said
    assert [port.name for port in load(library).get_inputs()] == ["x", "times"]
    plugin = folder / "ops.py"
    plugin.touch()
    for model in ([network, *records], [library, "--model", network]):
        assert main(["verify", *model, *CONST, "--plugin", str(plugin)]) == 0
        said = capsys.readouterr().err
        if model[0] == network:
            assert f"run: ansorpy tune {network} --threads 1 --const 'axes=[0]' --db" in said
            assert said.endswith(f" --plugin {plugin}\n")
        assert main(["bench", *model, *CONST, "--against", "onnxruntime", "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert found["model"] == "net" and set(found["engines"]) == {"ansorpy", "onnxruntime"}
    for verb in ("run", "show", "explain"):
        stored = records if verb != "explain" else []
        assert main([verb, network, *CONST, *stored]) == 0


def test_what_a_library_was_compiled_with_must_be_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, library = str(folder / "net.onnx"), str(folder / "net.so")
    assert main(["verify", library, "--model", network]) == 2
    said = capsys.readouterr().err
    assert "has no input 'axes', as the network has" in said
    assert "--const axes=VALUE" in said
    assert main(["run", library, *CONST]) == 2
    assert "which inputs are constant is fixed in the library" in capsys.readouterr().err
    assert main(["verify", network, "--const", "axis=[0]"]) == 2
    assert "there is no input 'axis' that could be constant" in capsys.readouterr().err


def test_engines_compute_with_the_values_before_a_search(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes: list[tuple[int, ...]] = []

    def compare(
        contenders: Sequence[Contender], policy: Policy, progress: Callable[[str], None]
    ) -> None:
        progress("loading reference")
        [asked] = contenders
        assert set(asked.arguments["shapes"]) == {"x", "times"}
        engine = open_peer(**asked.arguments)
        engine.run()
        shapes.append(engine.outputs()["y"].shape)
        raise UsageError("enough")

    monkeypatch.setattr(peers, "compare", compare)
    asked = ["compile", str(folder / "net.onnx"), "-o", str(folder / "n.so"), "--threads", "1"]
    assert main([*asked, "--against", "reference", "--const", "axes=[1]", "-q"]) == 2
    assert shapes == [(3,)]
    assert capsys.readouterr().err == "error: enough\n"


def test_commands_repeat_the_values() -> None:
    given: dict[str, ArrayLike] = {"axes": [0, 1], "mask": np.array([True, False])}
    lookup = Lookup(Path("net.onnx"), constants=given)
    said = "ansorpy tune net.onnx --const 'axes=[0,1]' --const 'mask=[true,false]'"
    assert lookup.command("tune") == said
