"""What the benchmarks' command lines share."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ansorpy.errors import AnsorpyError

__all__ = ["exit_code", "say"]


def say(line: str) -> None:
    """Progress, beside the results."""
    print(line, file=sys.stderr, flush=True)


def exit_code(work: Callable[[], int]) -> int:
    """What *work* returns; an error of ours is said plainly and gives its own code."""
    try:
        return work()
    except AnsorpyError as error:
        say(error.message)
        if error.hint:
            say(f"hint: {error.hint}")
        return error.exit_code
