"""What wheels contain; ``make wheel-test`` builds one and installs it into empty environments."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

import ansorpy

ROOT = Path(__file__).parents[1]


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """The package as ``pyproject.toml`` describes it."""
    monkeypatch.chdir(ROOT)
    made = Distribution({"script_name": "setup.py"})
    made.parse_config_files(["pyproject.toml"])
    made.include_package_data = False  # else a folder is written here, to ask what sdists hold
    return made


def test_a_wheel_has_all_files_of_the_package_and_no_others(described: Distribution) -> None:
    command = build_py(described)
    command.ensure_finalized()
    packed = {
        str(Path(file).relative_to(command.build_lib))
        for file in command.get_outputs(include_bytecode=False)
    }
    files = (file for file in Path("ansorpy").rglob("*") if file.is_file())
    assert packed == {str(file) for file in files if file.parent.name != "__pycache__"}
    assert {"ansorpy/py.typed", "ansorpy/runtime/templates/library.h.j2"} <= packed


def test_the_version_has_one_source(described: Distribution) -> None:
    assert described.metadata.get_version() == ansorpy.__version__
    assert metadata.version("ansorpy") == ansorpy.__version__


def test_every_extra_is_explained(described: Distribution) -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    for extra in described.extras_require:
        assert f"| `{extra}` |" in page, f"docs/start/install.md has no line about {extra}"
