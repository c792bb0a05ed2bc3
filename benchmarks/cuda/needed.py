"""Check for missing packages that the benchmark needs, before any of them is loaded."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

__all__ = ["DISTRIBUTIONS", "MODULES", "missing", "sentence"]

DISTRIBUTIONS = (
    "numpy", "ml_dtypes", "islpy", "llvmlite", "lightgbm", "networkx", "pydantic", "onnx", "typer",
    "rich", "jinja2", "cachetools", "scipy",
)  # fmt: skip
"""Distributions that ansorpy depends on; records keep the versions of some."""
MODULES = ("cupy", "torch")
"""Modules used on a GPU, whatever distributions provide them."""


def missing(distributions: tuple[str, ...] = DISTRIBUTIONS) -> list[str]:
    """The names in *distributions* and :data:`MODULES` that are not installed."""
    return [
        *(name for name in distributions if not _is_installed(name)),
        *(name for name in MODULES if find_spec(name) is None),
    ]


def sentence(names: list[str]) -> str:
    """The message when *names* are missing."""
    return f"not installed: {', '.join(names)}; try: pip install 'ansorpy[cuda]' torch"


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
