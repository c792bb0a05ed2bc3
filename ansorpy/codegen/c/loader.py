"""Compile programs in C with the compiler of this machine, and load them into this process."""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from _ctypes import dlclose
from collections.abc import Sequence
from typing import Self

from ansorpy.codegen.c.compiler import Compiler, find_compiler
from ansorpy.codegen.c.emit import CFunctions, translation_unit
from ansorpy.codegen.c.packed import PACKING
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.llvm.objects.jit import load as load_objects
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.codegen.singletons import singleton
from ansorpy.errors import CodegenError, MissingDependency

__all__ = ["CLibrary", "can_compile", "flags_of", "load", "shared_library"]


def flags_of(style: Style) -> tuple[str, ...]:
    """Compiler options for C of this *style*."""
    return ("-fopenmp",) if style.threads == "openmp" else ()


def can_compile(style: Style) -> bool:
    """Whether this machine can compile C of this *style*; some compilers lack OpenMP."""
    try:
        compiler = find_compiler()
        return style.threads == "none" or _loads_openmp(compiler)
    except MissingDependency:
        return False


def shared_library(unit: CFunctions) -> bytes:
    """Compile the functions of one program to a shared library for this machine.

    Raises:
        CodegenError: The compiler rejects them.
        MissingDependency: There is no compiler.
    """
    return find_compiler().shared_library(translation_unit([unit]), flags_of(unit.style))


class CLibrary:
    """Loaded programs; addresses are valid until :meth:`close` or garbage collection.

    Each C program brings a shared library; all others are object code for this machine.
    """

    def __init__(self, codes: Sequence[ObjectCode]) -> None:
        self._in_c: list[ctypes.CDLL] = []
        self._addresses: dict[str, int] = {}
        self._unload = weakref.finalize(self, _unload, self._in_c)
        self._unload.atexit = False
        for code in codes:
            if PACKING.is_packed(code.code):
                self._addresses[code.symbol] = self._opened(code)
        rest = [code for code in codes if code.symbol not in self._addresses]
        self._rest = load_objects(rest) if rest else None
        if self._rest is not None:
            self._addresses |= {code.symbol: self._rest.address(code.symbol) for code in rest}

    def address(self, symbol: str) -> int:
        """The address of the function *symbol*.

        Raises:
            CodegenError: There is no such function, or the library was closed.
        """
        if symbol not in self._addresses:
            raise CodegenError(f"no function {symbol} was loaded")
        return self._addresses[symbol]

    def close(self) -> None:
        """Unload the code; calling an address afterwards crashes."""
        self._addresses.clear()
        self._unload()
        if self._rest is not None:
            self._rest.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _opened(self, code: ObjectCode) -> int:
        functions, image = PACKING.unpack(code.code)
        if functions.style.threads == "openmp":
            _loads_openmp(find_compiler())
        library = _loaded(image or shared_library(functions))
        self._in_c.append(library)
        address = ctypes.cast(getattr(library, functions.symbol), ctypes.c_void_p).value
        assert address is not None, functions.symbol
        return address


def _unload(libraries: list[ctypes.CDLL]) -> None:
    while libraries:
        dlclose(libraries.pop()._handle)


def load(codes: Sequence[ObjectCode]) -> CLibrary:
    """Load C programs, and object code for this machine, into this process.

    Raises:
        CodegenError: The compiler rejects a program, or it cannot be loaded.
        MissingDependency: There is no compiler.
    """
    return CLibrary(codes)


_PAUSE_SOFT = 1
"""``omp_pause_soft``: free threads, keep settings."""


@singleton
def _loads_openmp(compiler: Compiler) -> bool:
    """Load the OpenMP runtime of *compiler* for good, if it has one; whether it does.

    Its threads outlive the program that started them.  It ends them before a fork: the child has
    none, but libgomp would wait for them there.  A compiler that lacks it is asked once.
    """
    text = "#include <omp.h>\nint most_threads(void) { return omp_get_max_threads(); }\n"
    try:
        library = _loaded(compiler.shared_library(text, ("-fopenmp",)))
    except CodegenError:
        return False
    pause = getattr(library, "omp_pause_resource_all", None)  # OpenMP 5.0
    if pause is not None:
        os.register_at_fork(before=lambda: pause(_PAUSE_SOFT))
    return True


def _loaded(image: bytes) -> ctypes.CDLL:
    """Load the shared library *image*; its temporary file is deleted once it is loaded."""
    handle, path = tempfile.mkstemp(prefix="ansorpy-", suffix=".so")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(image)
        return ctypes.CDLL(path)
    except OSError as error:
        raise CodegenError(f"the compiled C cannot be loaded: {error}") from error
    finally:
        os.unlink(path)
