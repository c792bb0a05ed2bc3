"""The C compiler of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.codegen.compiler_driver import Driver, find_driver, to_linker

__all__ = ["Compiler", "find_compiler"]

_FLAGS = ("-std=c11", "-O2", "-ffp-contract=fast", "-fPIC")


class Compiler(Driver):
    """A compiler driver that compiles C to shared libraries."""

    def shared_library(self, text: str, flags: Sequence[str] = ()) -> bytes:
        """Compile and link *text*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        with TemporaryDirectory(prefix="ansorpy-c-") as folder:
            source, library = Path(folder, "program.c"), Path(folder, "program.so")
            source.write_text(text, encoding="utf-8")
            self._compile(source, library, flags)
            return library.read_bytes()

    def link(self, source: Path, library: Path, flags: Sequence[str] = ()) -> None:
        """Compile and link the C file *source* to the shared *library*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        name = to_linker("-soname", library.name)
        self._compile(source, library, [*name, *flags])

    def _compile(self, source: Path, library: Path, options: Sequence[str]) -> None:
        command = [*_FLAGS, str(source), "-o", str(library), "-shared", *options, "-lm"]
        self.run(command, "compile a program")


def find_compiler() -> Compiler:
    """The compiler driver of this machine; raises as :func:`find_driver` does."""
    return Compiler(find_driver("compiling C").command)
