"""Ctrl-C: the first lets the running batch finish and its results be saved, the second ends now."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["EXIT_INTERRUPTED", "Interrupt", "graceful_interrupt"]

EXIT_INTERRUPTED = 130


class Interrupt:
    """Whether the user asked to stop.  Work that can stop asks at points where all is saved."""

    def __init__(self) -> None:
        self.requested = False

    def stop_here(self) -> None:
        """Raise ``KeyboardInterrupt`` when the user asked for it; call it where nothing is lost."""
        if self.requested:
            raise KeyboardInterrupt

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal is noted, the next one raises at once."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print("\nfinishing this batch; Ctrl-C again stops at once", file=sys.stderr, flush=True)


@contextmanager
def graceful_interrupt() -> Iterator[Interrupt]:
    """Handle SIGINT as this module says while the block runs."""
    interrupt = Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.on_signal)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
