"""Loop programs emitted as C, compiled together and run: what tests of the C backend build on."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.c.emit import CSource, emit_c, translation_unit
from ansorpy.codegen.c.loader import can_compile
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.object_code import KERNEL
from ansorpy.errors import MissingDependency
from ansorpy.ir.loops import Program
from ansorpy.ir.sizes import Sizes, at, fixed
from ansorpy.target import Target

__all__ = ["STRICT", "TARGET", "CompiledC", "has_command", "needs_cc", "needs_openmp"]

Array = NDArray[Any]
TARGET = Target.parse("x86-64-v3")
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


def _is_there() -> bool:
    try:
        find_compiler()
    except MissingDependency:
        return False
    return True


needs_cc = pytest.mark.skipif(not _is_there(), reason="there is no C compiler")


needs_openmp = pytest.mark.skipif(
    not can_compile(Style(threads="openmp")), reason="the C compiler has no OpenMP"
)


def has_command(name: str) -> bool:
    return shutil.which(name) is not None


class CompiledC:
    """Programs by their symbols, in one library; calling it runs one on arrays in place."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        folder: Path,
        style: Style | None = None,
        flags: Sequence[str] = ("-O1", *STRICT),
        target: Target = TARGET,
    ) -> None:
        self.sources: dict[str, CSource] = {
            symbol: emit_c(program, target, symbol, style) for symbol, program in programs.items()
        }
        text = translation_unit(list(self.sources.values()))
        path = folder / "programs.so"
        path.write_bytes(find_compiler().shared_library(text, flags))
        self.library = ctypes.CDLL(str(path))

    def __call__(
        self, symbol: str, arrays: Sequence[Array], threads: int = 1, sizes: Sizes | None = None
    ) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        size = at(self.sources[symbol].storage.workspace_bytes(threads), sizes or {})
        space = aligned_empty((max(64, fixed(size)),), np.uint8)
        run = KERNEL((symbol, self.library))
        assert run(ctypes.addressof(pointers), space.ctypes.data, threads) == 0
