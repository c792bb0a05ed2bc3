"""Running a verb in this process, within bounds, and judging how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

from ansorpy.cli.main import main

__all__ = ["MEMORY_BYTES", "can_be_passed", "run_verb", "surroundings"]

MEMORY_BYTES = 6 << 30
"""Address space that a verb may take beyond what its process has: the constants of a model may take
2 GiB, and a verb may hold them in two forms."""
_CODES = (0, 2, 3, 4, 5, 6)
"""Those of ``docs/reference/cli.md`` but 1, an internal error, and 130, a user's."""


@contextlib.contextmanager
def surroundings(folder: Path, user: Path) -> Iterator[None]:
    """The working folder is *folder*, and the user's key lies in *user*."""
    own: Mapping[str, str] = {
        "ANSORPY_CACHE": str(folder / "cache"),
        "ANSORPY_STATE": str(user / "state"),
        "ANSORPY_DB": str(folder / "default.db"),
        "ANSORPY_CALIBRATE": "0",
        "COLUMNS": "200",
    }
    with mock.patch.dict(os.environ, own), contextlib.chdir(folder):
        os.environ.pop("ANSORPY_DEBUG", None)
        yield


def run_verb(arguments: Sequence[str], *, apart: bool = False) -> str:
    """Run ``ansorpy`` with *arguments*; returns how it ended, in a word or two.

    Args:
        apart: Run it in a process of its own instead of this one.

    Raises:
        AssertionError: It ended in another way than the documented ones.
    """
    with _bounded():
        code, said = (_in_a_process if apart else _here)(arguments)
    told = f"ansorpy {' '.join(map(repr, arguments))}\nended with {code} and said:\n{said[-1500:]}"
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert code in _CODES, told
    assert "Traceback" not in said and "internal error" not in said, told
    assert len(errors) == (0 if code == 0 else 1) or code == 4, told
    return f"exit {code}"


def can_be_passed(arguments: Sequence[str]) -> bool:
    """Whether another process can get *arguments*: not with a NUL, or half a character."""
    try:
        return b"\0" not in os.fsencode("".join(arguments))
    except UnicodeEncodeError:
        return False


def _here(arguments: Sequence[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return main(list(arguments)), err.getvalue()


def _in_a_process(arguments: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "ansorpy", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.returncode, done.stderr


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
