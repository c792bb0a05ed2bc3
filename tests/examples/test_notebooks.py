"""The notebooks of the gallery run, with small budgets, and are those that are shown."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ansorpy as ap
from ansorpy.runtime.compiled import CompiledModel
from examples.notebooks.__main__ import HERE, NOTEBOOKS

ROOT = Path(__file__).parents[2]
Compile = Callable[..., CompiledModel]


def cells(script: str) -> list[str]:
    """The cells of a script of jupytext's percent format, without their markers."""
    parts = re.split(r"^# %%(?: \[markdown\])?\n", script, flags=re.MULTILINE)
    return [part.strip() for part in parts if part.strip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all run, so that they share their records."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def compiled_once() -> Compile:
    """Compiles each network for each target once: notebooks have one in common."""
    compiled, whole = dict[tuple[object, ...], CompiledModel](), ap.compile

    def compile(network: Path, **options: Any) -> CompiledModel:
        key = network.read_bytes(), *sorted(options.items())
        if key not in compiled:
            compiled[key] = whole(network, **options)
        return compiled[key]

    return compile


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(
    name: str, folder: Path, compiled_once: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(ap, "compile", compiled_once)
    script = (HERE / f"{name}.py").read_text().replace("trials=64", 'effort="none"')
    exec(compile(script, name, "exec"), {"__name__": "__main__"})


def test_a_missing_compiler_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    [cell] = [c for c in cells((HERE / "embed_in_c.py").read_text()) if "shutil.which" in c]
    exec(cell, {"shutil": shutil})
    assert "no C compiler" in capsys.readouterr().out


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_gallery_shows_the_scripts(name: str) -> None:
    """Execute them again with ``python -m examples.notebooks`` if this fails."""
    shown = json.loads((ROOT / "docs" / "gallery" / f"{name}.ipynb").read_text())
    sources = ["".join(cell["source"]).strip() for cell in shown["cells"]]
    plain = [re.sub(r"^# ?", "", cell, flags=re.MULTILINE) if cell.startswith("# ") else cell
             for cell in cells((HERE / f"{name}.py").read_text())]  # fmt: skip
    assert sources == plain
    assert any(cell.get("outputs") for cell in shown["cells"])
    assert not any(
        output["output_type"] == "error" for cell in shown["cells"]
        for output in cell.get("outputs", ())
    )  # fmt: skip
