"""The system's libgomp, loaded when the first threaded kernel is."""

from __future__ import annotations

from functools import cache

from ansorpy.errors import MissingDependency

__all__ = ["LIBRARY", "load_gomp", "needs_gomp"]

LIBRARY = "libgomp.so.1"


def needs_gomp(image: bytes) -> bool:
    """True when an object file refers to libgomp."""
    return b"GOMP_parallel" in image


@cache
def load_gomp() -> None:
    """Make libgomp's functions visible to code loaded later.

    Raises:
        MissingDependency: It is not installed.
    """
    from llvmlite import binding

    try:
        binding.load_library_permanently(LIBRARY)
    except RuntimeError as error:
        raise MissingDependency(
            f"{LIBRARY}, which runs parallel loops, cannot be loaded: {error}",
            hint="install it (Debian, Ubuntu: apt-get install libgomp1; Fedora: dnf install "
            "libgomp), or run with one thread",
        ) from error
