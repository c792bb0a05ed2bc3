"""Exit codes of commands (docs/reference/cli.md), and the errors that every command expects."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ansorpy.errors import AnsorpyError

__all__ = ["EXIT_INTERNAL", "EXIT_INTERRUPTED", "EXIT_USAGE", "exit_code"]

EXIT_INTERNAL, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def exit_code(command: Callable[[], int]) -> int:
    """Run *command* and return its exit code; print an :class:`AnsorpyError` and return its code.

    A command whose reader is gone (``| head``) ends without a message.  Other errors are raised.
    """
    try:
        code = command()
        sys.stdout.flush()
    except AnsorpyError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Python flushes stdout once more as it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERNAL
    return code
