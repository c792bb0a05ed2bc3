"""Text is read exactly or refused with the way to write it."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.quantities import (
    bytes_of,
    counted,
    is_real,
    is_whole,
    latency_of,
    ms_of,
    path_of,
    seconds_of,
    whole_of,
)


def test_numbers() -> None:
    assert is_whole(np.int64(3)) and not is_whole(True) and not is_whole(3.0)
    assert is_real(np.float32(3)) and is_real(3) and not is_real(True) and not is_real("3")
    assert [counted(n, "trial") for n in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]
    assert ms_of(2e-3) == 2.0 and ms_of(None) is None


def test_whole_numbers_become_plain() -> None:
    assert type(whole_of(np.int64(3), "seed")) is int and whole_of(0, "seed", 0) == 0
    for wrong in (0, -1, True, 1.5, "1", b"1", None):
        with pytest.raises(UsageError, match=f"^seed must be a whole number .* 1, got {wrong!r}$"):
            whole_of(wrong, "seed")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("90s", 90), ("1h30m", 5400), ("45", 45), ("0.5m", 30), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    assert seconds_of(seconds) == seconds


@pytest.mark.parametrize("text", ["", "ten", "10x", "m", "-5s", "1h 30", "10ms"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        seconds_of(text)


def test_a_duration_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="not positive\nhint: write 90s, 10m"):
        seconds_of("0s")


@pytest.mark.parametrize(
    ("text", "size"), [("1GiB", 1 << 30), ("512MiB", 512 << 20), ("7", 7), ("1.5kB", 1500)]
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == bytes_of(size) == size


@pytest.mark.parametrize(
    "text", ["GiB", "1gib", "1 GiBs", "-1", -1, nan, inf, [1], None, True, b"1"]
)
def test_bad_sizes(text: Any) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        bytes_of(text)


def test_latencies() -> None:
    assert [latency_of(t) for t in ("5ms", "800us", "1.5s", "2 ms")] == [5e-3, 8e-4, 1.5, 2e-3]
    for text in ("5", "0ms", "5m", "fast"):
        with pytest.raises(UsageError, match="is not a latency"):
            latency_of(text)


def test_text_and_paths_are_paths() -> None:
    assert path_of("a/b.so", "a library") == path_of(Path("a", "b.so"), "a library")


@pytest.mark.parametrize("given", [None, 5, True, b"a.so", ["a.so"]])
def test_what_is_no_path_is_refused(given: object) -> None:
    said = f"^a library is given by its path, not by {type(given).__name__}\nhint: pass text"
    with pytest.raises(UsageError, match=said):
        path_of(given, "a library")
