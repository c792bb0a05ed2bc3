"""Reading the values of options: durations, sizes, shapes, dimensions, inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansorpy.errors import UsageError

__all__ = ["parse_bytes", "parse_dims", "parse_duration", "parse_shapes"]

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_BYTES = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20,
    "GiB": 1 << 30,
}  # fmt: skip


def parse_duration(text: str | None) -> float | None:
    """Seconds of ``10m``, ``90s``, ``1h30m`` or a plain number of seconds; None stays None."""
    if text is None:
        return None
    clean = text.strip().lower()
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", clean)
    if re.fullmatch(r"\d+(\.\d+)?", clean):
        seconds = float(clean)
    elif parts and "".join(number + unit for number, unit in parts) == clean:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    else:
        raise UsageError(f"{text!r} is not a duration", hint="write 90s, 10m or 1h30m")
    if seconds <= 0:
        raise UsageError(f"the duration {text!r} is not positive")
    return seconds


def parse_bytes(text: str | None) -> int | None:
    """Bytes of ``1GiB``, ``512MiB``, ``2GB`` or a plain number; None stays None."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in _BYTES:
        raise UsageError(f"{text!r} is not a size", hint="write 512MiB or 1GiB")
    return int(float(match[1]) * _BYTES[match[2]])


def parse_shapes(items: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """``x:1x3x224x224`` as ``{"x": (1, 3, 224, 224)}``; a name may hold colons itself."""
    found = {}
    for item in items:
        name, _, extents = item.rpartition(":")
        if not name or not re.fullmatch(r"\d+(x\d+)*", extents):
            raise UsageError(f"{item!r} is not an input's shape", hint="write x:1x3x224x224")
        found[name] = tuple(int(extent) for extent in extents.split("x"))
    return found


def parse_dims(items: Iterable[str]) -> dict[str, int]:
    """``batch=1`` as ``{"batch": 1}``."""
    found = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise UsageError(f"{item!r} is not a dimension's size", hint="write batch=1")
        found[name] = int(size)
    return found
