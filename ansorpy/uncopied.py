"""Objects that hold machine code of this process, which no copy of them could use."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

from ansorpy.errors import UsageError

__all__ = ["Uncopied"]


class Uncopied:
    """A base of such objects; ``copy`` and ``pickle`` refuse them."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(
            f"{self!r} holds machine code of this process, so it is neither copied nor pickled",
            hint='write a library with export("net.so"), and ap.load("net.so") where it is needed',
        )
