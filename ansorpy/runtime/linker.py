"""Link with whatever compiler driver the machine has; only exports need one."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansorpy.config import compiler_command
from ansorpy.errors import CodegenError, MissingDependency, UsageError
from ansorpy.target import Target

__all__ = ["Linker", "find_linker"]


@dataclass(frozen=True)
class Linker:
    """A compiler driver that assembles and links; ``command`` is its command line."""

    command: tuple[str, ...]

    def compile_c(self, source: Path, output: Path) -> None:
        """Compile the C file *source* to the object *output*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        options = ["-std=gnu11", "-O1", "-fPIC", "-c"]
        self._run([*options, str(source), "-o", str(output)], f"compile {source.name}")

    def shared_library(
        self,
        output: Path,
        soname: str,
        files: Sequence[Path],
        *,
        exports: Path | None = None,
        needs: Sequence[str] = (),
    ) -> None:
        """Link *files* (objects, assembly, libraries) to *output*.

        Args:
            exports: A version script; without it every global symbol is visible.
            needs: Libraries, as linker options.

        Raises:
            CodegenError: The linker failed; the message is the linker's own.
        """
        options = ["-shared", f"-Wl,-soname,{soname}", "-Wl,-z,noexecstack"]
        if exports is not None:
            options += [f"-Wl,--version-script={exports}", "-Wl,-z,defs", "-Wl,--as-needed"]
        libraries = ["-lm", *needs] if exports is not None else ["-nostdlib"]
        whole = [*options, *map(str, files), *libraries, "-o", str(output)]
        self._run(whole, f"link {soname}")

    def _run(self, options: Sequence[str], what: str) -> None:
        command = [*self.command, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise MissingDependency(
                f"{self.command[0]} cannot be run: {error}", hint=_ADVICE
            ) from error
        if done.returncode:
            raise CodegenError(f"{shlex.join(self.command)} cannot {what}: {done.stderr.strip()}")


_ADVICE = "install gcc or clang, or pip install 'ansorpy[export]', or set CC"


def find_linker(target: Target) -> Linker:
    """Find the first available of ``$CC``, ``cc``, ``gcc``, ``clang``, ``python -m ziglang cc``.

    For an architecture other than this machine's: ``$CC``, ``<arch>-linux-gnu-gcc``, ``ziglang``.

    Raises:
        MissingDependency: None is installed, or the command in ``$CC`` does not exist.
        UsageError: The target has no shared libraries.
    """
    if target.triple.startswith("wasm"):
        raise UsageError(
            f"no library can be made for {target.name}: WebAssembly has no shared libraries",
            hint="its kernels compile to objects: ansorpy.codegen.llvm.objects.build.build",
        )
    arch = target.triple.split("-")[0]
    native = arch == Target.host().triple.split("-")[0]
    names = ("cc", "gcc", "clang") if native else (f"{arch}-linux-gnu-gcc",)
    command = compiler_command(*names)
    if command is not None:
        return Linker(command)
    if importlib.util.find_spec("ziglang") is not None:
        return Linker((sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-gnu"))
    raise MissingDependency(
        f"linking a library for {arch} needs a compiler driver, and none of "
        f"{', '.join(names)} or ziglang is installed",
        hint=_ADVICE,
    )
