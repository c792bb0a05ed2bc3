"""Parsing option values: durations, latencies, sizes, shapes, dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ansorpy.errors import UsageError

__all__ = [
    "by_network", "network_names", "parse_bytes", "parse_dims", "parse_duration", "parse_latency",
    "parse_positive", "parse_shapes",
]  # fmt: skip

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_BYTES = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20,
    "GiB": 1 << 30,
}  # fmt: skip


def parse_duration(text: str | None) -> float | None:
    """Parse ``10m``, ``90s``, ``1h30m`` or plain seconds into seconds; None stays None."""
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


def parse_latency(text: str) -> float:
    """Parse ``5ms``, ``800us`` or ``1.5s`` into seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s)", text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"{text!r} is not a latency", hint="write 5ms, 800us or 1.5s")
    return float(match[1]) / {"us": 1e6, "ms": 1e3, "s": 1.0}[match[2]]


def parse_positive(option: str, text: str) -> float:
    """Parse a number above 0; *option* is for the error message."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) == 0:
        raise UsageError(f"{option} {text}: not a number over 0")
    return float(text)


def by_network(option: str, values: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """The value of each network in *names* that has one.

    ``VALUE`` applies to every network, ``NAME=VALUE`` to one and takes precedence.

    Raises:
        UsageError: A name that is not a network's.
    """
    found: dict[str, str] = {}
    for value in sorted(values, key=lambda v: "=" in v):
        name, equals, text = value.rpartition("=")
        if equals and name not in names:
            raise UsageError(
                f"{option} {value}: there is no network {name!r}",
                hint=f"the networks are {', '.join(names)}",
            )
        found |= {name: text} if equals else dict.fromkeys(names, text)
    return found


def network_names(models: Sequence[Path]) -> list[str]:
    """Name each network: its file name without ``.onnx``, plus folders as given if not unique.

    Raises:
        UsageError: A network is given twice.
    """
    stems = [model.stem for model in models]
    names = [
        stem if stems.count(stem) == 1 else str(model.with_suffix(""))
        for model, stem in zip(models, stems, strict=True)
    ]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"two networks are called {twice[0]}",
            hint="name each once; --weight makes one count more",
        )
    return names


def parse_bytes(text: str | None) -> int | None:
    """Parse ``1GiB``, ``512MiB``, ``2GB`` or a plain number into bytes; None stays None."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in _BYTES:
        raise UsageError(f"{text!r} is not a size", hint="write 512MiB or 1GiB")
    return int(float(match[1]) * _BYTES[match[2]])


def parse_shapes(items: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse ``x:1x3x224x224`` into ``{"x": (1, 3, 224, 224)}``; names may contain colons."""
    found = {}
    for item in items:
        name, _, extents = item.rpartition(":")
        if not name or not re.fullmatch(r"\d+(x\d+)*", extents):
            raise UsageError(f"{item!r} is not an input's shape", hint="write x:1x3x224x224")
        found[name] = tuple(int(extent) for extent in extents.split("x"))
    return found


def parse_dims(items: Iterable[str]) -> dict[str, int]:
    """Parse ``batch=1`` into ``{"batch": 1}``."""
    found = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name or not size.isdecimal():
            raise UsageError(f"{item!r} is not a dimension's size", hint="write batch=1")
        found[name] = int(size)
    return found
