"""Random changes of bytes, numbers and texts, as accidents and attackers make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

__all__ = ["INTEGERS", "REALS", "TEXTS", "changed_bytes", "one_of"]

Rng = np.random.Generator
T = TypeVar("T")

INTEGERS = (
    0, 1, -1, 2, 3, 7, 100, 255, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 31, 1 << 40,
    (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
REALS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "", " ", "x", "\n", "x0", "../../../etc/passwd", "/dev/zero", "/proc/self/mem", "a" * 5000,
    "\u202e\U0001f600", "%s%n", "\0", "<b>", "[red]", "ai.onnx", "com.microsoft", "-1", "1e999",
    "{", '{"a": [1, 2]}', "NaN",
)  # fmt: skip


def one_of(rng: Rng, options: Sequence[T]) -> T:
    """One of *options*."""
    return options[int(rng.integers(len(options)))]


def changed_bytes(data: bytes, rng: Rng) -> bytes:
    """*data* with bits flipped, or parts overwritten, left out, repeated or exchanged."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            return bytes(changed)
        start = int(rng.integers(len(changed)))
        length = min(len(changed) - start, int(rng.choice([1, 1, 2, 4, 16, 64, 300])))
        way = int(rng.integers(7))
        if way <= 2:
            changed[start] ^= 1 << int(rng.integers(8))
        elif way == 3:
            changed[start : start + length] = bytes(
                one_of(rng, (0, 0xFF, 0x7F)) for _ in range(length)
            )
        elif way == 4:
            changed[start : start + length] = changed[start : start + length] * 2
        elif way == 5:
            del changed[start : start + length]
        else:
            del changed[start:]
    return bytes(changed)
