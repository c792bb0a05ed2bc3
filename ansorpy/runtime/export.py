"""Export a plan as a library or C source, with a header and an example program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.errors import UsageError
from ansorpy.runtime.backends import runtime_of
from ansorpy.runtime.cpu_features import is_x86, required_features
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.header import beside, write_example, write_header
from ansorpy.runtime.library.build import build_program
from ansorpy.runtime.library.forms import Pack
from ansorpy.target import Target
from ansorpy.writable import demand_folders, demand_writable

__all__ = ["check_exportable", "export", "export_versions"]


def export(plan: ExecutionPlan, path: Path, pack: str | None = None) -> Path:
    """Write the library *path*, ``<stem>.h`` and ``<stem>_example.c``; returns *path*.

    Args:
        pack: ``"at-init"`` or ``"in-file"`` (:class:`Pack`): when the constants are packed.
            Without it: when ``init`` runs, where that makes the library smaller or only the target
            can pack them; otherwise now.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: The folder does not exist, or the constants exceed what one library can hold.
        CodegenError: The linker failed.
        OSError: A file cannot be written: the disk is full, say.
    """
    return export_versions([plan], path, pack)


def export_versions(plans: Sequence[ExecutionPlan], path: Path, pack: str | None = None) -> Path:
    """Write a library with several versions of a program, as :func:`export` does one.

    ``init`` takes the first of *plans* whose instructions the CPU has, those with most features
    first.  Constants that are equal, or are packed from equal ones, are stored once.

    Raises:
        UsageError: The versions are not all for x86 CPUs, or cannot be exported.
        MissingDependency, CodegenError, OSError: As for :func:`export`.
    """
    path, when = path.absolute(), _pack(pack)
    check_exportable(path, [plan.target for plan in plans], when)
    try:
        if len(plans) == 1:
            metadata = runtime_of(plans[0].target).export(plans[0], path, when)
        else:
            order = sorted(plans, key=lambda plan: -len(required_features(plan.target)))
            metadata = build_program(order, path, when)
        write_header(metadata, path)
        write_example(metadata, path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a write names no file
    return path


def _pack(given: str | None) -> Pack | None:
    if given is None:
        return None
    try:
        return Pack(given)
    except ValueError:
        hint = f"use one of {', '.join(Pack)}"
        raise UsageError(f"unknown pack {given!r}", hint=hint) from None


def check_exportable(path: Path, targets: Sequence[Target], pack: Pack | None = None) -> None:
    """Check that a program with a version for each of *targets* can be exported.

    Call this before a long search.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: *path* or one of the files beside it cannot be written, or no file of this kind
            can be made for the targets.
    """
    path = path.absolute()
    demand_writable(path, *beside(path))
    demand_folders(path.parent)  # each file is made beside the one that it replaces
    if path.exists() and not path.is_file():  # a device
        raise UsageError(f"cannot write {path}", hint="name a file in a folder you can write to")
    for target in targets:
        if len(targets) > 1 and (target.backend != "llvm" or not is_x86(target)):
            raise UsageError(
                f"{path.name} cannot have a version for {target.name}: only machine code for x86 "
                "CPUs has versions",
                hint="name one target, and export a file for each",
            )
        _check_target(path, target, pack)


def _check_target(path: Path, target: Target, pack: Pack | None) -> None:
    runtime = runtime_of(target)
    if pack is Pack.AT_INIT and not runtime.packs_at_init:
        raise UsageError(
            f"programs for {target.name} do not pack their constants at init",
            hint="leave out --pack at-init (pack= in Python): they are stored ready to read",
        )
    if pack is Pack.IN_FILE and runtime.packs_at_init and not target.runs_on_host():
        raise UsageError(
            f"constants for {target.name} cannot be packed on this machine",
            hint="leave out --pack in-file (pack= in Python): init packs them there",
        )
    runtime.require_export(path, target)
