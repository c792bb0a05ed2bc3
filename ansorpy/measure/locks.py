"""Machine-wide locks on cores: whoever times on a core has it alone.

Timing holds its cores exclusively; searching, training and building, which would disturb it, hold
theirs together.  Those who ask first are served first, so neither waits for ever.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ansorpy.errors import AnsorpyError
from ansorpy.phases import Part, phase

__all__ = ["lock_cores"]


@contextmanager
def lock_cores(
    cores: Sequence[int], folder: Path | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Hold *cores* until the block ends; waits while others on this machine have one.

    *shared* holders exclude nobody but those who want a core alone.  One lock file a core, taken
    in ascending order, so overlapping sets exclude each other and never deadlock; a second file
    is held while waiting, so that nobody overtakes.  Not to be nested: a process would wait for
    itself.  The kernel drops the locks when the process dies.
    """
    where = Path(tempfile.gettempdir()) if folder is None else folder
    with ExitStack() as held:
        for core in sorted(set(cores)):
            descriptor = _open(where / f"ansorpy-core-{core}.lock")
            held.callback(_release, descriptor)
            with phase(Part.WAIT), _turn(where / f"ansorpy-core-{core}.turn"):
                fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """First come, first served: without it, shared holders that come and go starve the others."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        _release(descriptor)


def _release(descriptor: int) -> None:
    """Unlock, then close: a process forked meanwhile has the file open too, and keeps it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            # Without O_CREAT first: in a sticky folder the kernel refuses to create over
            # another user's file, while opening it is allowed.
            return os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o666)
            with suppress(PermissionError):
                # Another user's tuner must be able to take it too, whatever our umask.
                os.fchmod(descriptor, 0o666)
            return descriptor
    except OSError as error:
        raise AnsorpyError(
            f"cannot lock a core for timing: {path}: {error.strerror}",
            hint="remove that file, or set TMPDIR to a folder you can write to",
        ) from None
