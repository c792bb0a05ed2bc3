"""Verbs that write say at once when they cannot, before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ansorpy.api import networks, train_model
from ansorpy.api.evaluate import bench, models
from ansorpy.cli import searching
from ansorpy.cli.main import main
from ansorpy.measure.records import repair, schema
from ansorpy.measure.records.database import Database
from ansorpy.runtime.library import linker
from tests.frontend.models import graph_model, node


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network and a database; no verb may begin to work."""

    def work(*given: object, **options: object) -> None:
        raise AssertionError("the work began")

    for module, name in (
        (networks, "open_networks"), (bench, "compare"), (models, "open_model"),
        (train_model, "train_model"), (repair, "repair"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, work)
    (tmp_path / "net.onnx").touch()
    (tmp_path / "dir.c").mkdir()
    Database(tmp_path / "t.db").close()
    return tmp_path


COMMANDS = [
    "compile net.onnx -o", "compile net.onnx --target c:word=64 -o", "export net.onnx --db t.db -o",
    "export net.onnx --db t.db --emit c -o", "bench net.so -o", "run net.so --save",
    "dataset train t.db -o", "db repair --db t.db -o",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["no/out.c", "net.onnx/out.c", "dir.c", "/proc/out.c", "n" * 254])
def test_places_that_cannot_be_written(
    folder: Path,
    command: str,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    path = f"{folder / place}{'.c' if len(place) == 254 else ''}"
    assert main([*command.split(), path]) == 2
    assert f"error: cannot write {path}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["net.h", "net_example.c", "net.c.bin"])
@pytest.mark.parametrize("verb", ["compile", "export"])
def test_files_beside_a_library_that_cannot_be_written(
    folder: Path, verb: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).mkdir()
    options = ["--db", str(folder / "t.db"), "-o", str(folder / "net.c")]
    assert main([verb, str(folder / "net.onnx"), *options]) == 2
    assert f"error: cannot write {folder / name}: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["compile", "export"])
@pytest.mark.parametrize("name", ["net.xyz", "net", "net.h", "net.1", "net.a.1"])
def test_a_name_that_does_not_say_what_to_write(
    folder: Path, verb: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--db", str(folder / "t.db"), "-o", str(folder / name)]
    assert main([verb, str(folder / "net.onnx"), *options]) == 2
    said = capsys.readouterr().err
    assert f"the name {name} does not say what to write" in said
    assert "let it end in .so, .a, .o, .c, .ll, .s" in said


def test_tuning_needs_a_database_that_can_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "is_read_only", lambda path: True)
    assert main(["tune", str(folder / "net.onnx"), "--db", str(folder / "t.db")]) == 6
    assert "nothing that is measured would be kept" in capsys.readouterr().err


def test_a_network_with_more_constants_than_a_library_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weight = numpy_helper.from_array(np.ones((50, 50), np.float32), "w")
    model = graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (2, 50)}, ["y"])
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, size_threshold=0)
    monkeypatch.setattr(linker, "MAX_BYTES", 1000)
    monkeypatch.setattr(searching, "tune_networks", None)  # never called
    given = ["compile", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.a")]
    given += ["--target", "aarch64-linux-gnu", "--effort", "none"]
    assert main([*given, "--db", str(tmp_path / "t.db")]) == 2
    assert "a library for aarch64-linux-gnu holds up to 2 GiB" in capsys.readouterr().err
