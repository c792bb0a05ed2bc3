"""Numbers and paths as users give them, and numbers as they read them."""

from __future__ import annotations

import re
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, SupportsFloat, SupportsInt, TypeGuard

from ansorpy.errors import UsageError

__all__ = [
    "LARGEST_SIZE", "bytes_of", "bytes_text", "counted", "duration_text", "is_real", "is_whole",
    "latency_of", "latency_text", "ms_of", "path_of", "seconds_of", "whole_of",
]  # fmt: skip

LARGEST_SIZE = (1 << 63) - 1
"""Of a dimension: compiled code has sizes as int64."""

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_BYTES = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20,
    "GiB": 1 << 30,
}  # fmt: skip


def is_whole(value: object) -> TypeGuard[SupportsInt]:
    """Whether *value* is an integer, also one of numpy; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[SupportsFloat]:
    """Whether *value* is a number, also one of numpy; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_of(given: object, what: str, least: int = 1) -> int:
    """*given*, which is to be *what*, as an int.

    Raises:
        UsageError: It is no whole number, or less than *least*.
    """
    if not is_whole(given) or int(given) < least:
        raise UsageError(f"{what} must be a whole number of at least {least}, got {given!r}")
    return int(given)


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


def counted(number: int, thing: str) -> str:
    """``1 thread`` or ``2 threads``: *number* of what *thing* is one of."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def seconds_of(duration: float | str) -> float:
    """The seconds in ``10m``, ``90s``, ``1h30m`` or ``45``; a number is seconds already."""
    if not isinstance(duration, str):
        return duration
    clean = duration.strip().lower()
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", clean)
    if re.fullmatch(r"\d+(\.\d+)?", clean):
        seconds = float(clean)
    elif parts and "".join(number + unit for number, unit in parts) == clean:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    else:
        raise UsageError(f"{duration!r} is not a duration", hint="write 90s, 10m or 1h30m")
    if seconds <= 0:
        raise UsageError(
            f"the duration {duration!r} is not positive",
            hint="write 90s, 10m or 1h30m",
        )
    return seconds


def duration_text(seconds: float) -> str:
    """*seconds* as :func:`seconds_of` reads them: ``1h30m``, ``90s``."""
    whole = round(seconds)
    if whole != seconds or whole < 120:
        return f"{seconds:g}s"
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def latency_text(seconds: float) -> str:
    """*seconds* of a short run, in milliseconds, or in microseconds below one millisecond.

    >>> latency_text(43.3e-9), latency_text(43.3e-6), latency_text(0.012345)
    ('0.043 us', '43.3 us', '12.345 ms')
    """
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3f} ms"
    return f"{seconds * 1e6:.{1 if seconds >= 1e-5 else 3}f} us"


def ms_of(seconds: float | None) -> float | None:
    """*seconds* in milliseconds, as JSON has them; None if they are not known."""
    return None if seconds is None else seconds * 1e3


def latency_of(latency: float | str) -> float:
    """The seconds in ``5ms``, ``800us`` or ``1.5s``; a number is seconds already."""
    if not isinstance(latency, str):
        return latency
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(us|ms|s)", latency.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"{latency!r} is not a latency", hint="write 5ms, 800us or 1.5s")
    return float(match[1]) / {"us": 1e6, "ms": 1e3, "s": 1.0}[match[2]]


def bytes_of(size: int | str) -> int:
    """The bytes in ``1GiB``, ``512MiB``, ``2GB`` or ``4096``; a number is bytes already."""
    if isinstance(size, Real) and not isinstance(size, bool) and 0 <= size < inf:
        return int(size)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(size).strip())
    if not isinstance(size, str) or match is None or match[2] not in _BYTES:
        raise UsageError(f"{size!r} is not a size", hint="write 512MiB or 1GiB")
    return int(float(match[1]) * _BYTES[match[2]])


def bytes_text(size: int) -> str:
    """*size* bytes in the largest unit not above it: ``7.75 MiB``."""
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    return f"{size / (1 << 10 * power):.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
