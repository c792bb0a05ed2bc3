"""Files of arrays with a header: numpy's format without pickle, of which nothing is executed."""

from __future__ import annotations

import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from ansorpy.writable import replacing

__all__ = ["DAMAGE", "write_archive"]

DAMAGE = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError,
          OverflowError, SyntaxError, tokenize.TokenError,
          zipfile.BadZipFile, zlib.error, lzma.LZMAError)  # fmt: skip
"""Raised by numpy, its parser of headers and zipfile for foreign or damaged files."""


def write_archive(path: Path, header: BaseModel, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write *header*, as JSON, and *arrays* atomically: a reader sees the old file or the new one.

    Raises:
        OSError: The file cannot be written.
    """
    line = np.frombuffer(header.model_dump_json().encode(), dtype=np.uint8)
    with replacing(path) as made, made.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, header=line, **arrays)
