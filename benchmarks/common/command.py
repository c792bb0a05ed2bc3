"""Common parts of the benchmarks' command lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ansorpy.errors import AnsorpyError

__all__ = ["exit_code", "say", "write_whole"]


def say(line: str) -> None:
    """Print progress to stderr, apart from the results."""
    print(line, file=sys.stderr, flush=True)


def exit_code(work: Callable[[], int]) -> int:
    """The result of *work*; if it raises one of our errors, report it and return its exit code."""
    try:
        return work()
    except AnsorpyError as error:
        say(error.message)
        if error.hint:
            say(f"hint: {error.hint}")
        return error.exit_code


def write_whole(file: Path, text: str) -> None:
    """Write *text* atomically: a run that is stopped leaves either the old or the new file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(text + "\n")
    part.replace(file)
