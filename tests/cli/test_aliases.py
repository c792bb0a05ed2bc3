"""The verbs on a network whose caches grow in place: compile, run, verify, bench, from records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.cli.main import main
from ansorpy.runtime.model import load
from tests.graph.nets import Net

pytestmark = pytest.mark.usefixtures("short_turns", "engines_here", "few_sizes")


def growing() -> onnx.ModelProto:
    """Two caches with a row more each, and the largest product of their rows."""
    shape = (1, 3, "past", 5)
    net = Net(x=(1, 3, 1, 5), past_key=shape, past_value=shape)
    key = net.op("Concat", "past_key", "x", axis=2)
    value = net.op("Concat", "past_value", net.relu("x"), axis=2)
    mixed = net.op("ReduceMax", net.op("Mul", key, value), axes=[2], keepdims=0)
    network = net.model(mixed, key, value)
    names = {key: "concat_key", value: "concat_value"}
    for node in network.graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(value, value) for value in values]
    for output in network.graph.output:
        output.name = names.get(output.name, output.name)
    return network


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aliases")
    onnx.save(growing(), folder / "net.onnx")
    return folder


def files(folder: Path) -> tuple[str, str, list[str]]:
    records = ["--db", str(folder / "t.db"), "--threads", "1"]
    return str(folder / "net.onnx"), str(folder / "net.so"), records


def test_verbs_make_memory_with_room(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, library, records = files(folder)
    given = ["--dim", "past=0..6", "--alias", "concat_*=past_*"]
    compiled = ["compile", network, "-o", library, "--effort", "none", *given, *records]
    assert main(compiled) == 0
    assert len(load(library).get_outputs()) == 3
    for model in ([library], [network, *given[2:], *records]):
        sizes = ["--dim", "past=5"]
        same = ["--model", network] if model[0] == library else []
        assert main(["verify", *model, *same, *sizes]) == 0
        saved = str(folder / "out.npz")
        assert main(["run", *model, *sizes, "--save", saved]) == 0
        assert np.load(saved)["concat_key"].shape == (1, 3, 6, 5)
        capsys.readouterr()
        assert main(["bench", *model, *same, *sizes, "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert list(found["engines"]) == ["ansorpy"]


def test_a_library_keeps_its_pairs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "net.so"
    library.write_bytes(b"\x7fELF")
    assert main(["run", str(library), "--alias", "present=past"]) == 2
    said = capsys.readouterr().err
    assert "which tensors share memory is fixed in the library" in said
    assert "leave out --alias (alias= in Python), or compile another library" in said
    network = str(folder / "net.onnx")
    wrong = ["compile", network, "--effort", "none", "--dim", "past=4", "--alias"]
    assert main([*wrong, "concat_key"]) == 2
    assert "write present=past" in capsys.readouterr().err
    assert main([*wrong, "concat_key=x"]) == 2
    said = capsys.readouterr().err
    assert "output 'concat_key' cannot share the memory of input 'x'" in said
    assert main([*wrong, "concat_*=past_*", "--target", "sm_90"]) == 2
    assert "cannot share the memory of inputs in programs for sm_90" in capsys.readouterr().err


def test_commands_repeat_the_pairs() -> None:
    lookup = Lookup(Path("net.onnx"), alias={"present": "past"})
    assert lookup.command("tune") == "ansorpy tune net.onnx --alias present=past"
