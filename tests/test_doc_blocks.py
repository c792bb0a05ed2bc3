"""The code blocks of README and docs/ run as printed, each page's in one namespace."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import typer
from onnx import TensorProto, helper, numpy_helper

from ansorpy.cli.main import VERBS, repeat_list_option
from ansorpy.measure.program_dataset import write_dataset
from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import WeightedTask, tune_tasks
from tests.datasets import small_dataset
from tests.search.runners import FormulaRunner
from tests.search.tasks import dense_relu
from tests.tasks.curves import OPTIONS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PLAIN = re.compile(r"^```python\n((?!>>> ).*?)^```$", re.DOTALL | re.MULTILINE)
SHORT = {"trials=64": "trials=2", 'effort="quick"': "trials=2", "time_limit=600": "trials=2"}
"""Budgets on the pages, and those with which they run here."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that pages name, all small."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("net", "detect", "classify", "mobilenet"):
        onnx.save(_network(), folder / f"{name}.onnx")
    task = replace(dense_relu(16, 32, 64), target=Target.host())
    source = WeightedTask(task, SketchSampler(task))
    with Database(folder / "resnet50.db") as database:
        tune_tasks([source], Budget(trials=12), FormulaRunner(), database, options=OPTIONS)
    write_dataset(small_dataset(), folder / "programs.npz")
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with copies of these files and the benchmarks beside them."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSORPY_DB", str(tmp_path / "default.db"))
    return tmp_path


def _network() -> onnx.ModelProto:
    """A product of matrices."""
    [x, y] = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [3, 8]), ("y", [3, 5]))
    )
    weights = numpy_helper.from_array(np.ones((8, 5), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "net", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_python_of_a_page(path: Path, folder: Path) -> None:
    if path.name == "pytorch.md":
        pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")
    scope: dict[str, Any] = {"__name__": path.stem}
    for at, part in enumerate(PLAIN.split(path.read_text())):
        if at % 2 == 0:
            _check_examples(part, scope, path)
        else:
            exec(compile(_short(part), str(path), "exec"), scope)
    if path.name == "README.md":
        assert (folder / "net.so").exists() and (scope["c"] == 512.0).all()
        a, b = np.random.default_rng(0).standard_normal((2, 512, 512), dtype=np.float32)
        np.testing.assert_allclose(scope["kernel"](a, b), a @ b, rtol=1e-3, atol=1e-3)


def _check_examples(text: str, scope: dict[str, Any], path: Path) -> None:
    """Run the lines after ``>>>``, and compare what they print."""
    plain = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(plain, scope, path.name, str(path), 0)
    output: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append, clear_globs=False)
    assert not output, "".join(output)
    scope.update(test.globs)


def _short(block: str) -> str:
    for printed, here in SHORT.items():
        block = block.replace(printed, here)
    assert "trials=2" in block or 'effort="none"' in block or "ap.tune(" not in block
    return block


def _commands(text: str) -> Iterator[str]:
    """The commands after ``$`` in the blocks of a page, without comments."""
    for block in re.findall(r"^```(?:console)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"^\$ (.*)$", block.replace("\\\n", ""), re.MULTILINE)


COMMANDS = [(path.name, line) for path in PAGES for line in _commands(path.read_text())]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_the_commands_of_a_page(page: str, line: str) -> None:
    """Those of ansorpy have the verbs and options that they use; modules that are run exist."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if words[0] == "ansorpy":
        app = typer.Typer()
        for verb in VERBS:
            app.command(verb.__name__)(verb)
        group = typer.main.get_command(app)
        assert isinstance(group, typer.core.TyperGroup)
        command = group.commands[words[1]]
        command.make_context(words[1], repeat_list_option(words[2:]))
    elif words[0] == "python":
        assert words[1] == "-m" and find_spec(words[2]) is not None
    else:
        assert words[0] in ("make", "pip", "cc", "gcc", "clang", "ray"), line
