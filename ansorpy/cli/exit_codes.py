"""Exit codes of commands (docs/reference/cli.md), and the errors that every command expects."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from ansorpy.config import DEBUG
from ansorpy.errors import AnsorpyError, UsageError

__all__ = ["EXIT_INTERNAL", "EXIT_INTERRUPTED", "EXIT_USAGE", "exit_code", "is_debugging"]

EXIT_INTERNAL, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def exit_code(command: Callable[[], int]) -> int:
    """Run *command* and return its exit code; print an :class:`AnsorpyError` and return its code.

    If debugging, the traceback shows what else caused it.

    A command whose reader is gone (``| head``) ends without a message.  Other errors are raised.
    """
    try:
        code = command()
        sys.stdout.flush()
    except AnsorpyError as error:
        if error.__cause__ is not None and is_debugging():
            traceback.print_exception(error.__cause__)
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Python flushes stdout once more as it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERNAL
    return code


def is_debugging() -> bool:
    """Whether tracebacks are shown: also if the variable has a value that is no answer."""
    try:
        return DEBUG.get()
    except UsageError:
        return True
