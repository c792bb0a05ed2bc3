"""A module imports only from lower layers or its own folder (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ansorpy

PACKAGE = Path(ansorpy.__file__).parent

LAYERS = (
    {"errors", "__version__"}, {"config", "deadline", "phases", "rates", "registry"}, {"target"},
    {"ir"},
    {"schedule", "codegen", "graph"},
    {"rules", "measure", "frontend"},
    {"cost", "runtime"},
    {"search"},
    {"tasks"},
    {"report"},
    {"api"},
    {"cli", "__main__"},
)  # fmt: skip
# ``from ansorpy import __version__`` reads a constant of the package itself.
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

# `python -m ansorpy` is the command line under another name.
SAME_LEVEL = {("__main__", "cli")}


def imported_modules(source: str) -> list[str]:
    """Modules of ansorpy that *source* imports, anywhere in the file."""
    names: list[str] = []
    for n in ast.walk(ast.parse(source)):
        if isinstance(n, ast.ImportFrom) and n.module == "ansorpy":
            names += [f"ansorpy.{alias.name}" for alias in n.names]
        elif isinstance(n, ast.ImportFrom) and n.module:
            names.append(n.module)
        elif isinstance(n, ast.Import):
            names += [alias.name for alias in n.names]
    return [name for name in names if name.startswith("ansorpy.")]


def imported_parts(source: str) -> set[str]:
    return {name.split(".")[1] for name in imported_modules(source)}


def violations(part: str, source: str) -> list[str]:
    return [
        f"{part} -> {other}"
        for other in sorted(imported_parts(source) - {part})
        if LEVEL[other] >= LEVEL[part] and (part, other) not in SAME_LEVEL
    ]


def relative_imports(source: str) -> list[int]:
    tree = ast.parse(source)
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level]


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    source = path.read_text()
    assert violations(part_of(path), source) == []
    assert relative_imports(source) == [], "use absolute imports, this test reads them"


def test_every_part_has_a_level() -> None:
    assert {part_of(path) for path in modules()} <= set(LEVEL)


def test_the_check_itself_sees_upward_sideways_and_nested_imports() -> None:
    assert violations("ir", "from ansorpy.schedule.state import State") == ["ir -> schedule"]
    assert violations("graph", "import ansorpy.codegen") == ["graph -> codegen"]
    assert violations("ir", "def f():\n    from ansorpy import search") == ["ir -> search"]
    assert violations("search", "from ansorpy.ir.dag import ComputeDAG") == []
