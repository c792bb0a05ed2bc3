"""Export a plan as a library or C source, with a header and an example program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.errors import UsageError
from ansorpy.runtime.backends import runtime_of
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.header import beside, write_header
from ansorpy.target import Target
from ansorpy.writable import demand_writable

__all__ = ["check_exportable", "export"]


def export(plan: ExecutionPlan, path: Path, *, pool: NDArray[np.uint8] | None = None) -> Path:
    """Write the library *path*, ``<stem>.h`` and ``<stem>_example.c``; returns *path*.

    Args:
        pool: The packed constants, to be stored ready to read.  Without it, the original constants
            are stored and ``init`` packs them.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: The folder does not exist, or the constants exceed what one library can hold.
        CodegenError: The linker failed.
        OSError: A file cannot be written: the disk is full, say.
    """
    path = path.absolute()
    check_exportable(path, plan.target)
    try:
        write_header(runtime_of(plan.target).export(plan, path, pool), path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a write names no file
    return path


def check_exportable(path: Path, target: Target) -> None:
    """Check that a program for *target* can be exported; call this before a long search.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: *path* or one of the files beside it cannot be written, or no file of this kind
            can be made for the target.
    """
    path = path.absolute()
    files = (path, *beside(path))
    if len(set(files)) < len(files):
        raise UsageError(
            f"the header would replace the library {path}", hint="let its name end in .so or .c"
        )
    demand_writable(*files)
    if path.exists() and not path.is_file():  # a device
        raise UsageError(f"cannot write {path}", hint="name a file in a folder you can write to")
    runtime_of(target).require_export(path, target)
