"""The compiler driver (``cc``) of this machine, which compiles C, assembles and links."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.config import compiler_command
from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.target import Target

__all__ = ["Driver", "find_driver", "to_linker"]


@dataclass(frozen=True)
class Driver:
    """A program that takes the options of ``cc``; ``command`` is its command line."""

    command: tuple[str, ...]

    def run(self, options: Sequence[str], what: str) -> None:
        """Run it with *options*; *what* says in error messages what it should do.

        Raises:
            CodegenError: It failed; the message is the driver's own.
            MissingDependency: It cannot be run.
        """
        command = [*self.command, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            message = f"{self.command[0]} cannot be run: {error}"
            raise MissingDependency(message, hint=_advice("gcc", "clang")) from error
        if done.returncode:
            raise CodegenError(f"{shlex.join(self.command)} cannot {what}: {done.stderr.strip()}")


def find_driver(what: str, target: Target | None = None) -> Driver:
    """Find the first available of ``$CC``, ``cc``, ``gcc``, ``clang``, ``python -m ziglang cc``.

    For an architecture other than this machine's: ``$CC``, ``<arch>-linux-gnu-gcc``, ``ziglang``.

    Args:
        what: What needs it, for the message.
        target: What the output is for; None: this machine.

    Raises:
        MissingDependency: None is installed, or the command in ``$CC`` does not exist.
    """
    here = Target.host().triple.split("-")[0]
    arch = here if target is None else target.triple.split("-")[0]
    names = ("cc", "gcc", "clang") if arch == here else (f"{arch}-linux-gnu-gcc",)
    command = compiler_command(*names)
    if command is not None:
        return Driver(command)
    if importlib.util.find_spec("ziglang") is not None:
        return Driver((sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-gnu"))
    raise MissingDependency(
        f"{what} needs a compiler driver, and none of {', '.join(names)} or ziglang is installed",
        hint=_advice(*(name for name in names if name != "cc")),
    )


def to_linker(*options: str) -> list[str]:
    """The options of a driver that pass *options* on; ``-Wl`` would split paths at commas."""
    return [part for option in options for part in ("-Xlinker", option)]


def _advice(*names: str) -> str:
    return f"install {' or '.join(names)}, or pip install 'ansorpy[export]', or set CC"
