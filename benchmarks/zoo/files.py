"""Networks as files that are written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

from ansorpy.writable import replacing

__all__ = ["saved_once"]


def saved_once(path: Path, model: Callable[[], onnx.ModelProto]) -> Path:
    """Write *model* to *path* unless it exists; returns *path*.  A file there is always whole."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as made:
            onnx.save(model(), made)
    return path
