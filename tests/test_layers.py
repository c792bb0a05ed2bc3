"""A module imports only from lower layers or its own folder (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.sources import FILES, PACKAGE, at, nodes, tree

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


def imported_modules(tree: ast.Module) -> list[str]:
    """Modules of ansorpy that a file imports, anywhere in it."""
    names: list[str] = []
    for n in nodes(tree):
        if isinstance(n, ast.ImportFrom) and n.module == "ansorpy":
            names += [f"ansorpy.{alias.name}" for alias in n.names]
        elif isinstance(n, ast.ImportFrom) and n.module:
            names.append(n.module)
        elif isinstance(n, ast.Import):
            names += [alias.name for alias in n.names]
    return [name for name in names if name.startswith("ansorpy.")]


def violations(part: str, tree: ast.Module) -> list[str]:
    imported = {name.split(".")[1] for name in imported_modules(tree)}
    return [
        f"{part} -> {other}"
        for other in sorted(imported - {part})
        if LEVEL[other] >= LEVEL[part] and (part, other) not in SAME_LEVEL
    ]


def relative_imports(tree: ast.Module) -> list[int]:
    return [n.lineno for n in nodes(tree) if isinstance(n, ast.ImportFrom) and n.level]


MODULES = [path for path in FILES if path != PACKAGE / "__init__.py"]


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def test_imports_go_down() -> None:
    assert [f"{at(p)}: {v}" for p in MODULES for v in violations(part_of(p), tree(p))] == []


def test_imports_are_absolute() -> None:
    """The checks of this file read absolute ones."""
    assert [at(p, line) for p in MODULES for line in relative_imports(tree(p))] == []


def test_every_part_has_a_level() -> None:
    assert {part_of(path) for path in MODULES} <= set(LEVEL)


def test_the_check_itself_sees_upward_sideways_and_nested_imports() -> None:
    assert violations("ir", ast.parse("from ansorpy.schedule.state import State")) == [
        "ir -> schedule"
    ]
    assert violations("graph", ast.parse("import ansorpy.codegen")) == ["graph -> codegen"]
    assert violations("ir", ast.parse("def f():\n    from ansorpy import search")) == [
        "ir -> search"
    ]
    assert violations("search", ast.parse("from ansorpy.ir.dag import ComputeDAG")) == []
