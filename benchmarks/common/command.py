"""Common parts of the benchmarks' command lines."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["command_line", "records", "say"]


def command_line(name: str, about: str | None) -> argparse.ArgumentParser:
    """The parser of ``python -m benchmarks.NAME``; its help shows *about* as it is written."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def say(line: str) -> None:
    """Print progress to stderr, apart from the results."""
    print(line, file=sys.stderr, flush=True)


def records(asked: Path | None, name: str, effort: str, stack: ExitStack) -> Path:
    """The database *asked* for, by default ``build/NAME.db``; its folder exists.

    With effort "none", the default is a new file without trials, which is gone when *stack* closes.
    """
    if asked is None and effort == "none":
        folder = stack.enter_context(TemporaryDirectory(prefix=f"{name}-"))
        return Path(folder, f"{name}.db")
    path = asked or Path("build", f"{name}.db")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
