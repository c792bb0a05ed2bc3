"""Networks as files that are written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

__all__ = ["saved_once"]


def saved_once(path: Path, model: Callable[[], onnx.ModelProto]) -> Path:
    """Write *model* to *path* unless it exists; returns *path*.  A file there is always whole."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        onnx.save(model(), part)
        part.replace(path)
    return path
