"""Paths as users give them in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansorpy.errors import UsageError

__all__ = ["path_of"]


def path_of(given: Any, what: str) -> Path:
    """*given*, the path of *what*.

    Raises:
        UsageError: It is no path.
    """
    try:
        return Path(given)
    except TypeError:
        raise UsageError(
            f"{what} is given by its path, not by {type(given).__name__}",
            hint="pass text or a pathlib.Path",
        ) from None
