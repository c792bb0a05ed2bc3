"""The package's files and their syntax trees, each read and parsed once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import ansorpy

__all__ = ["FILES", "PACKAGE", "at", "nodes", "source", "tree"]

PACKAGE = Path(ansorpy.__file__).parent
FILES = tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def source(path: Path) -> str:
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    """Of all modules together millions of nodes, which the garbage collector shall not walk."""
    gc.disable()
    try:
        return ast.parse(source(path))
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a module."""
    return tuple(ast.walk(tree))


def at(path: Path, line: int | None = None) -> str:
    """``folder/file.py:line``, as a violation is reported."""
    place = str(path.relative_to(PACKAGE.parent))
    return place if line is None else f"{place}:{line}"
