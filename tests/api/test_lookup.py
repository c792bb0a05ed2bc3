"""Commands that messages tell users to run: they take what was given, and work where they say."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from ansorpy.api.arguments import LookupArguments
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.size_ranges import SizeRange
from ansorpy.target import Target
from tests.frontend.models import graph_model, node


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bounds": {"trip": 100}}, "--bound trip=0..100"),
        ({"bounds": {"trip": (1, 100)}}, "--bound trip=1..100"),
        ({"bounds": {"trip": "1..100"}}, "--bound trip=1..100"),
        ({"bounds": {"shape": [1, (2, 640)]}}, "--bound shape=0..1,2..640"),
        ({"dims": {"n": (1, 512)}}, "--dim n=1..512"),
        ({"dims": {"n": [1, 8, 8, 32]}}, "--dim 'n=1,8*2,32'"),
        ({"dims": {"n": np.int64(8), "m": "1..7"}}, "--dim n=8 --dim m=1..7"),
        ({"shapes": {"x": (1, SizeRange(3, 9), np.int64(4))}}, "--shape x=1x3..9x4"),
        ({"constants": {"mask": np.zeros((8, 8), bool)}}, None),
        ({"constants": {"mask": np.zeros((8, 9), bool)}}, "--const mask=@FILE.npy"),
        ({"target": Target.parse("x86-64-v3")}, "--target x86-64-v3"),
        ({"db": Path("my records.db")}, "--db 'my records.db'"),
    ],
)
def test_commands_take_what_python_takes(given: LookupArguments, words: str | None) -> None:
    said = Lookup(Path("net.onnx"), **given).command("tune")
    if words is None:
        assert "@" not in said and said.count("false") == 64
    else:
        assert said == f"ansorpy tune net.onnx {words}"


def test_commands_load_the_plugins() -> None:
    lookup = Lookup(Path("net.onnx"), plugins=["ops.py", Path("my parts.py")], threads=2)
    said = lookup.command("export", "-o", "net.so")
    assert said.startswith("ansorpy export net.onnx -o net.so --threads 2 --plugin ops.py ")
    assert shlex.split(said)[-2:] == ["--plugin", "my parts.py"]


@pytest.mark.parametrize(("target", "elsewhere"), [("host", False), ("cortex-a76", True)])
def test_programs_are_tuned_where_they_can_be_timed(
    target: str, elsewhere: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (3, 7)}, ["y"]), path)
    Lookup(path, target=target, threads=1).warn_of_predictions()
    said = capsys.readouterr().err
    where = " on a machine that can time them, or with --workers" if elsewhere else ""
    assert f"; to tune them, run{where}: ansorpy tune {path} --threads 1" in said


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_process_without_stderr_is_not_warned_of_predictions(
    is_closed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(graph_model([node("Relu", "x", "y")], {"x": (3, 7)}, ["y"]), path)
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if is_closed else None)
    Lookup(path, threads=1).warn_of_predictions()
    assert not capsys.readouterr().out  # print writes there if the file is None
