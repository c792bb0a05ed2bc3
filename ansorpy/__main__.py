"""``ansorpy`` and ``python -m ansorpy``: the command line, which Ctrl-C may stop while it loads."""

from __future__ import annotations

import sys
from importlib import import_module

from ansorpy.cli.exit_codes import EXIT_INTERRUPTED

__all__ = ["main"]


def main() -> int:
    """Run one command with the arguments of the process; return its exit code."""
    try:
        code: int = import_module("ansorpy.cli.main").main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
