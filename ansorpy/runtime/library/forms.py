"""The forms of an exported program, each with a file name suffix, and of its constants."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from ansorpy.errors import UsageError

__all__ = ["Form", "Pack", "constants_file", "form_of", "stem_of"]


class Form(StrEnum):
    """SO: a shared library.  A, O: a static library, an object.  C: source.  LL, ASM: listings of
    all code, in LLVM's language and in the machine's."""

    SO = "so"
    A = "a"
    O = "o"  # noqa: E741
    C = "c"
    LL = "ll"
    ASM = "asm"

    @property
    def suffix(self) -> str:
        """Of the names of such files."""
        return ".s" if self is Form.ASM else f".{self}"


class Pack(StrEnum):
    """When constants get the layout that calls read.

    AT_INIT: constants that grow by it are stored as the model has them, and ``init`` packs them.
        The library is smaller, and each process that loads it needs memory of its own for them.
    IN_FILE: all are stored ready to read, in pages that all processes share.
    """

    AT_INIT = "at-init"
    IN_FILE = "in-file"


def form_of(path: Path) -> Form:
    """The form of the file *path*, by its suffix; ``net.so.1`` is a shared library, too.

    Raises:
        UsageError: No form has this suffix.
    """
    suffix = _unversioned(path).suffix
    for form in Form:
        if form.suffix == suffix:
            return form
    raise UsageError(
        f"the name {path.name} does not say what to write",
        hint=f"let it end in {', '.join(form.suffix for form in Form)}",
    )


def stem_of(path: Path) -> str:
    """What the name of a program *path* is without the suffix of its form: ``net``."""
    return _unversioned(path).stem


def _unversioned(path: Path) -> Path:
    return Path(re.sub(r"\.so(\.\d+)+$", ".so", path.name))


def constants_file(text: Path) -> Path:
    """The file with the constants of a program written as *text*: ``net.c.bin``, beside it."""
    return text.with_name(f"{text.name}.bin")
