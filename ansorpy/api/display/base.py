"""The interface of displays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from ansorpy.search.events import Event

__all__ = ["Display"]


class Display(ABC):
    """Shows a search while its context is open.

    If it draws a board, that has noted each event before the display is called with it.
    """

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    @abstractmethod
    def __call__(self, event: Event) -> None:
        """Show what *event* tells."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the place to other output while the block runs."""
        yield
