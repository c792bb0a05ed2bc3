"""Recordings of programs, which Ctrl-C and SIGTERM end without loss."""

from __future__ import annotations

from functools import partial
from math import inf
from pathlib import Path

from ansorpy.api.dataset import Sources, record_dataset
from ansorpy.cli.interrupt import graceful_interrupt
from ansorpy.errors import Interrupted
from ansorpy.measure.program_dataset import ProgramDataset
from ansorpy.quantities import seconds_of
from ansorpy.target import Target
from ansorpy.tasks.record import RecordOptions

__all__ = ["record"]


def record(
    path: Path, sources: Sources, target: Target, options: RecordOptions,
    time_limit: str | None, *, quiet: bool = False,
) -> ProgramDataset:  # fmt: skip
    """Add programs of *sources* to *path*, until *time_limit*; says what is recorded.

    Raises:
        Interrupted: The user asked to stop; the programs so far are in *path*.
        ForeignFile, UsageError: As :func:`~ansorpy.api.dataset.record_dataset`.
    """
    with graceful_interrupt() as interrupt:
        try:
            found = record_dataset(
                path,
                sources,
                target,
                options,
                time_limit_s=inf if time_limit is None else seconds_of(time_limit),
                listener=(lambda _: None) if quiet else partial(print, flush=True),
                is_stopped=lambda: interrupt.requested,
            )
            interrupt.stop_here()
        except KeyboardInterrupt:
            said = f"interrupted; the programs so far are in {path}"
            raise Interrupted(said, hint="the same command continues") from None
    print(f"{path}: {len(found)} programs of {len(found.tasks)} tasks")
    return found
