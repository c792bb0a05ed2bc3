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
    """Return *work*'s result; one of our errors is reported plainly and gives its own exit code."""
    try:
        return work()
    except AnsorpyError as error:
        say(error.message)
        if error.hint:
            say(f"hint: {error.hint}")
        return error.exit_code
