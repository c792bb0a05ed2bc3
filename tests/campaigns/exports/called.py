"""Exported programs called from C, in a process of their own, under sanitizers or valgrind."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.runtime.ports import Port

__all__ = ["SANITIZED", "VALGRIND", "Called", "Caller", "Calls", "Left", "compile_c"]

Array = NDArray[np.generic]
CALLER = Path(__file__).with_name("caller.c")

SANITIZED = (
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1",
)  # fmt: skip
VALGRIND = (
    "valgrind", "--quiet", "--error-exitcode=92", "--leak-check=full", "--fair-sched=yes",
    "--errors-for-leak-kinds=definite",
)  # fmt: skip


@dataclass(frozen=True)
class Calls:
    """How often a program is called: per load, ``callers`` threads run it ``runs`` times each."""

    threads: int = 1
    callers: int = 1
    runs: int = 1
    loads: int = 1


@dataclass(frozen=True)
class Left:
    """What the process held after so many loads."""

    loads: int
    resident_bytes: int
    files: int
    threads: int


@dataclass(frozen=True)
class Called:
    """The outputs of a program, and what its process held on the way."""

    outputs: tuple[Array, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class Caller:
    """A compiled ``caller.c`` for the program that ``net.h`` in *folder* declares.

    Args:
        folder: With ``net.h`` and the library.
        inputs, outputs: Of the program.
        flags: For the compiler: sanitizers.
    """

    folder: Path
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shapes = "".join(
            f"{{.shape = {{{', '.join(map(str, p.shape)) or 0}}}}}, " for p in self.inputs
        )
        lines = [
            f"#define IN_BYTES {''.join(f'{p.bytes}, ' for p in self.inputs)}",
            f"#define OUT_BYTES {''.join(f'{p.bytes}, ' for p in self.outputs)}",
            f"#define IN_SHAPES {shapes}",
        ]
        (self.folder / "ports.h").write_text("\n".join(lines) + "\n")
        shutil.copy(CALLER, self.folder)
        compile_c(self.folder, ["caller.c"], "caller", (*self.flags, "-pthread", "-ldl"))

    def __call__(
        self, library: str, feeds: Sequence[Array], calls: Calls, under: Sequence[str] = ()
    ) -> Called:
        """Run *library* on *feeds*, the program started by the command *under*.

        Raises:
            AssertionError: The process failed; the message is what it said.
        """
        (self.folder / "in.bin").write_bytes(b"".join(feed.tobytes() for feed in feeds))
        numbers = map(str, (calls.threads, calls.callers, calls.runs, calls.loads))
        done = subprocess.run(
            [*under, "./caller", f"./{library}", *numbers, "in.bin", "out.bin"],
            cwd=self.folder, capture_output=True, text=True, errors="replace",
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )  # fmt: skip
        assert done.returncode == 0, f"{calls} ended with {done.returncode}:\n{done.stderr[:6000]}"
        return Called(tuple(self._outputs()), tuple(_left(done.stdout)))

    def _outputs(self) -> list[Array]:
        raw, at, found = (self.folder / "out.bin").read_bytes(), 0, []
        for port in self.outputs:
            data = raw[at : at + port.bytes]
            found.append(np.frombuffer(data, port.dtype).reshape(port.shape))
            at += port.bytes
        return found


def compile_c(folder: Path, sources: Sequence[str], output: str, flags: Sequence[str]) -> None:
    """Compile the files *sources* in *folder* to the file *output* there."""
    command = [*find_compiler().command, "-std=gnu11", "-O1", *sources, "-o", output, *flags, "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _left(said: str) -> list[Left]:
    return [Left(*map(int, line.split())) for line in said.splitlines()]
