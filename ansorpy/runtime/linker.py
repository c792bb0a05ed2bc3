"""Link with whatever compiler driver the machine has; only exports need one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.codegen.driver import Driver, find_driver
from ansorpy.errors import UsageError
from ansorpy.target import Target

__all__ = ["Linker", "find_linker"]


class Linker(Driver):
    """A compiler driver that assembles and links."""

    def compile_c(self, source: Path, output: Path) -> None:
        """Compile the C file *source* to the object *output*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        options = ["-std=gnu11", "-O1", "-fPIC", "-c"]
        self.run([*options, str(source), "-o", str(output)], f"compile {source.name}")

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
        self.run(whole, f"link {soname}")


def find_linker(target: Target) -> Linker:
    """The compiler driver for *target*; raises as :func:`find_driver` does.

    Raises:
        UsageError: The target has no shared libraries.
    """
    if target.triple.startswith("wasm"):
        raise UsageError(
            f"no library can be made for {target.name}: WebAssembly has no shared libraries",
            hint="its kernels compile to objects: ansorpy.codegen.llvm.objects.build.build",
        )
    arch = target.triple.split("-")[0]
    return Linker(find_driver(f"linking a library for {arch}", target).command)
