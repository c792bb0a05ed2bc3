"""Common parts of the benchmarks' command lines."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ansorpy.errors import AnsorpyError

__all__ = ["exit_code", "say"]


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
