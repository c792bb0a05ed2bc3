"""The platform tag of a wheel: on which Linux systems its library can be loaded.

Format: https://peps.python.org/pep-0600/
"""

from __future__ import annotations

import re
from pathlib import Path

from ansorpy.runtime.library.elf import needs_of

__all__ = ["platform_tag"]

_EARLIEST = {"x86_64": (2, 5), "aarch64": (2, 17), "ppc64le": (2, 17), "riscv64": (2, 31)}
"""The first version of glibc that manylinux tags exist for, by machine."""
_GLIBC = frozenset({"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"})
_LOADER = re.compile(r"ld-linux.*\.so\.\d+|ld64\.so\.\d+")
_VERSION = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
_PACKED_RELOCATIONS = "GLIBC_ABI_DT_RELR", (2, 36)
"""A version without a number, and the first glibc that has it."""


def platform_tag(library: Path, arch: str) -> str:
    """``manylinux_2_34_x86_64`` if *library* needs a glibc of that version and nothing else.

    ``linux_x86_64``, which says nothing about the system and which package indexes refuse, if it
    needs other libraries, or another libc.
    """
    needs, least = needs_of(library), _EARLIEST.get(arch)
    own = all(name in _GLIBC or _LOADER.fullmatch(name) for name in needs.libraries)
    versions = [_glibc(version) for version in needs.versions]
    known = [version for version in versions if version is not None]
    if least is None or not own or len(known) < len(versions):
        return f"linux_{arch}"
    major, minor = max([least, *known])
    return f"manylinux_{major}_{minor}_{arch}"


def _glibc(version: str) -> tuple[int, int] | None:
    """The first glibc with the symbol *version*; None if no glibc promises to have it."""
    if version == _PACKED_RELOCATIONS[0]:
        return _PACKED_RELOCATIONS[1]
    found = _VERSION.fullmatch(version)
    return None if found is None else (int(found[1]), int(found[2]))
