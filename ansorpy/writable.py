"""Whether files can be written, found out before the work whose results they should hold.

:func:`replacing` then writes one as a whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from ansorpy.errors import UsageError

__all__ = ["demand_folders", "demand_writable", "replacing", "write_whole"]


def demand_writable(*paths: Path, reads: Collection[Path] = ()) -> None:
    """Raise :class:`UsageError` unless each of *paths* can be written; nothing is changed.

    This is tried, since permissions say nothing about other users' quotas, long names and the
    special file systems of the kernel.  None of them may be one of the files that the command
    *reads*.
    """
    for path in paths:
        for source in reads:
            if _are_one(path, source):
                raise UsageError(f"{path} would replace {source}", hint="name another file")
        try:
            _try(path)
        except OSError as error:
            raise _refused(path, error, "name a file in a folder you can write to") from None


def demand_folders(*paths: Path) -> None:
    """Make the folders *paths*; raises :class:`UsageError` where no file can be written in one."""
    for path in paths:
        try:
            path.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise _refused(path, error, "name a folder you can write to") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place for a file that replaces *path* when the context exits without an error.

    Nobody sees a part of it, and those who have opened or mapped an old file keep that.

    Raises:
        OSError: No file can be made in the folder of *path*.
    """
    with TemporaryDirectory(prefix="ansorpy-", dir=path.parent) as folder:
        made = Path(folder, path.name)
        yield made
        os.replace(made, path)


def write_whole(path: Path, text: str) -> None:
    """Write *text* to the file *path*, which keeps what it had if that fails.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        with replacing(path) as made:
            made.write_text(text)
    except OSError as error:
        raise _refused(path, error, "check the folder, its free space and permissions") from None


def _refused(path: Path, error: OSError, hint: str) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror}", hint=hint)


def _are_one(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist, or cannot be looked up
        return False


def _try(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        with TemporaryFile(dir=path.parent):
            return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        with path.open("ab"):  # raises for a folder
            return
    if not os.access(path, os.W_OK):  # opening a pipe would wait for its reader
        raise PermissionError(None, "Permission denied")
