"""Handling of Ctrl-C and SIGTERM: the first lets the batch finish and saves its results, the second
ends at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["Interrupt", "graceful_interrupt"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FINISHING = b"\nfinishing this batch; Ctrl-C again stops at once\n"


class Interrupt:
    """Records whether the user asked to stop; work checks it at points where nothing is lost."""

    def __init__(self) -> None:
        self.requested = False

    def stop_here(self) -> None:
        """Raise ``KeyboardInterrupt`` if the user asked to stop."""
        if self.requested:
            raise KeyboardInterrupt

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal; raise ``KeyboardInterrupt`` at once on the next."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        # Not printed: the signal may have interrupted a print, which does not nest.
        with suppress(OSError):
            os.write(sys.stderr.fileno(), _FINISHING)


@contextmanager
def graceful_interrupt() -> Iterator[Interrupt]:
    """Handle both signals as the module docstring describes while the block runs."""
    interrupt = Interrupt()
    before = {number: signal.signal(number, interrupt.on_signal) for number in _SIGNALS}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
