"""Where the command line prints: what cannot be shown there ends no work."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["make_lenient"]

_ESCAPED = "backslashreplace"


class _Messages(FileIO):
    """A file to which as much is written as possible; the rest is lost without an error."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def make_lenient() -> None:
    """Have stdout and stderr of this process take every text.

    A stream that is closed prints nothing, and characters that its encoding lacks are escaped.
    Messages on stderr whose reader is gone are lost: in ``2>&1 | tee log``, Ctrl-C ends that
    reader, too, while a search still finishes its batch.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPED)
    if isinstance(sys.stderr, TextIOWrapper):
        messages = BufferedWriter(_Messages(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = TextIOWrapper(messages, sys.stderr.encoding, _ESCAPED, line_buffering=True)
