"""Versions of everything that determines what a search does and which bytes it builds."""

from __future__ import annotations

import platform
from importlib.metadata import version

from ansorpy.version import __version__

__all__ = ["versions"]

_PACKAGES = ("numpy", "lightgbm", "llvmlite", "islpy")


def versions() -> dict[str, str]:
    """Versions by name: this package, Python, and the packages a search computes with."""
    own = {"ansorpy": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in _PACKAGES}
