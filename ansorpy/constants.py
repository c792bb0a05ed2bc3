"""Values of inputs that are known when a network is compiled, as users write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from shlex import quote

import numpy as np
from numpy.typing import ArrayLike

from ansorpy.arrays import Array
from ansorpy.errors import ForeignFile, UsageError

__all__ = ["constant_flags", "constant_text", "named_constant"]

_HINT = "write axes=[0,1], k=5 or mode=@file.npy"

_MOST_SHOWN = 64
"""Numbers that a command line shows; more come from a file."""


def named_constant(item: str) -> tuple[str, ArrayLike]:
    """``("axes", [0, 1])`` from ``axes=[0,1]``; ``axes=@axes.npy`` reads a file of numpy.

    Raises:
        UsageError: It is no name and value.
        ForeignFile: A file holds no array, or cannot be read.
    """
    name, sign, text = item.partition("=")
    if not (name and sign and text):
        raise UsageError(f"{item!r} is not an input and its value", hint=_HINT)
    return name, _from_file(name, text[1:]) if text.startswith("@") else _parsed(name, text)


def _from_file(name: str, path: str) -> Array:
    try:
        with open(path, "rb") as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # numpy and its parser of headers raise a dozen kinds
        reason = getattr(error, "strerror", None) or "it is no .npy file"
        raise ForeignFile(
            f"cannot read the value of {name} in {path}: {reason}",
            hint="name a file that numpy.save wrote",
        ) from None
    return array


def _parsed(name: str, text: str) -> ArrayLike:
    try:
        value: ArrayLike = json.loads(text)
    except (RecursionError, ValueError):
        raise UsageError(f"{text!r} is not a value of {name}", hint=_HINT) from None
    return value


def constant_text(value: ArrayLike) -> str:
    """``[0,1]``: *value* as :func:`named_constant` reads it; ``@FILE.npy`` for many numbers."""
    array = np.asarray(value)
    if array.size > _MOST_SHOWN:
        return "@FILE.npy"
    return json.dumps(array.tolist(), separators=(",", ":"))


def constant_flags(names: Iterable[str]) -> str:
    """How to give the values of the inputs *names*."""
    flags = " ".join(f"--const {quote(f'{name}=VALUE')}" for name in names)
    return f"{flags} (constants= in Python)"
