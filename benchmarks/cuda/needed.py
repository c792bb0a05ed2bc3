"""Which packages the benchmark needs and this machine lacks, said before any of them is loaded."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

__all__ = ["DISTRIBUTIONS", "MODULES", "missing", "sentence"]

DISTRIBUTIONS = (
    "numpy", "ml_dtypes", "islpy", "llvmlite", "lightgbm", "networkx", "pydantic", "onnx", "typer",
    "rich", "jinja2", "cachetools",
)  # fmt: skip
"""What ansorpy depends on; records keep the versions of some."""
MODULES = ("cupy", "torch")
"""What is used on a GPU, whatever the distributions are called that hold it."""


def missing(distributions: tuple[str, ...] = DISTRIBUTIONS) -> list[str]:
    """Those of *distributions* and :data:`MODULES` that are not installed."""
    return [
        *(name for name in distributions if not _is_installed(name)),
        *(name for name in MODULES if find_spec(name) is None),
    ]


def sentence(names: list[str]) -> str:
    """What to say when *names* are missing."""
    return f"not installed: {', '.join(names)}; try: pip install 'ansorpy[cuda]' torch"


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
