"""One line about work in progress: rewritten on a terminal, printed now and then elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ansorpy.api.display.lines import LINE_S

if TYPE_CHECKING:
    from rich.status import Status

__all__ = ["StatusLine", "busy"]


@contextmanager
def busy(text: str) -> Iterator[None]:
    """Show *text* on a terminal while the block runs, which shows nothing else there."""
    with StatusLine(quiet=not sys.stderr.isatty()) as status:
        status(text)
        yield


class StatusLine:
    """Shows the latest of the texts that it is called with, on stderr.

    With *as_json*, each is an event on stdout instead; *quiet* shows none.  An empty text leaves
    the terminal to others.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._printed_at = float("-inf")
        self._status: Status | None = None

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __call__(self, text: str) -> None:
        """Show *text*."""
        if self._as_json:
            print(json.dumps({"event": "progress", "text": text}), flush=True)
        elif self._quiet:
            return
        elif not text:
            self._leave()
        elif sys.stderr.isatty():
            self._rewrite(text)
        elif time.monotonic() - self._printed_at >= LINE_S:
            self._printed_at = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def _rewrite(self, text: str) -> None:
        from rich.console import Console
        from rich.text import Text

        if self._status is None:
            self._status = Console(stderr=True, highlight=False).status(Text(text))
            self._status.start()
        self._status.update(Text(text))

    def _leave(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
