"""The C compiler of this machine."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.config import compiler_command
from ansorpy.errors import CodegenError, MissingDependency

__all__ = ["Compiler", "find_compiler"]

_ADVICE = "install gcc or clang, or set CC"
_FLAGS = ("-std=c11", "-O2", "-ffp-contract=fast", "-fPIC")


@dataclass(frozen=True)
class Compiler:
    """A compiler driver that takes the options of ``cc``; ``command`` is its command line."""

    command: tuple[str, ...]

    def shared_library(self, text: str, flags: Sequence[str] = ()) -> bytes:
        """Compile and link *text*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        return self._compiled(text, "program.so", ("-shared", *flags, "-lm"))

    def link(self, source: Path, library: Path, flags: Sequence[str] = ()) -> None:
        """Compile and link the C file *source* to the shared *library*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        name = f"-Wl,-soname,{library.name}"
        self._compile(source, library, ("-shared", name, *flags, "-lm"))

    def _compiled(self, text: str, name: str, options: Sequence[str]) -> bytes:
        with TemporaryDirectory(prefix="ansorpy-c-") as folder:
            source, output = Path(folder, "program.c"), Path(folder, name)
            source.write_text(text)
            self._compile(source, output, options)
            return output.read_bytes()

    def _compile(self, source: Path, output: Path, options: Sequence[str]) -> None:
        self._run([*self.command, *_FLAGS, str(source), "-o", str(output), *options])

    def _run(self, command: Sequence[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise MissingDependency(f"{command[0]} cannot be run: {error}", hint=_ADVICE) from error
        if done.returncode:
            raise CodegenError(f"{shlex.join(self.command)} rejects a program:\n{done.stderr}")


def find_compiler() -> Compiler:
    """The first available of ``$CC``, ``cc``, ``gcc`` and ``clang``.

    Raises:
        MissingDependency: None is installed, or the command in ``$CC`` does not exist.
    """
    command = compiler_command("cc", "gcc", "clang")
    if command is None:
        raise MissingDependency(
            "compiling C needs a compiler, and none of cc, gcc and clang is installed",
            hint=_ADVICE,
        )
    return Compiler(command)
