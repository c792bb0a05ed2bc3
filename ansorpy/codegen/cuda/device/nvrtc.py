"""Compile CUDA C to a cubin with NVRTC, which needs neither a device nor a driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ansorpy.errors import CodegenError, MissingDependency
from ansorpy.target import Target

__all__ = ["architectures", "compile_source", "ptx", "version"]

_LINES = 12
"""Number of lines of the compiler's log that an error shows."""


@lru_cache(maxsize=128)
def compile_source(text: str, target: Target) -> tuple[bytes, str]:
    """Compile *text* for *target*; returns the cubin and the assembler's report.

    Recent results are cached, so finalists and the default schedule are not compiled twice.

    Raises:
        CodegenError: The compiler rejects *text*.
        MissingDependency: There is no NVRTC, or it does not support the architecture.
    """
    # NVRTC gives no report for results from its own cache.
    with _compiled(text, target, target.cpu, "--no-cache", "--ptxas-options=-v") as program:
        # cupy drops the last byte as if it were a string terminator; it is a zero here, too.
        return _nvrtc().getCUBIN(program) + b"\0", _nvrtc().getProgramLog(program)


def ptx(text: str, target: Target) -> str:
    """Compile *text* to PTX for *target*.

    Raises:
        CodegenError, MissingDependency: As :func:`compile_source`.
    """
    with _compiled(text, target, target.cpu.replace("sm_", "compute_")) as program:
        found: bytes = _nvrtc().getPTX(program)
        return found.decode()


@contextmanager
def _compiled(text: str, target: Target, architecture: str, *options: str) -> Iterator[object]:
    """The compiled NVRTC program of *text*; it is destroyed when the context exits."""
    nvrtc = _nvrtc()
    if target.cpu.rstrip("af") not in architectures():
        raise MissingDependency(
            f"NVRTC {version()} does not compile for {target.cpu}",
            hint=f"it supports {', '.join(architectures())}",
        )
    program = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        try:
            whole = (f"--gpu-architecture={architecture}", "--std=c++17", *options)
            nvrtc.compileProgram(program, whole)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip().splitlines()
            raise CodegenError(
                f"NVRTC rejects the generated source: {error}\n" + "\n".join(log[:_LINES])
            ) from error
        yield program
    finally:
        nvrtc.destroyProgram(program)


def version() -> str:
    """NVRTC's version in the form that records store.

    Raises:
        MissingDependency: There is no NVRTC.
    """
    major, minor = _nvrtc().getVersion()
    return f"{major}.{minor}"


def architectures() -> tuple[str, ...]:
    """The architectures that NVRTC compiles for.

    Raises:
        MissingDependency: There is no NVRTC.
    """
    return tuple(f"sm_{number}" for number in _nvrtc().getSupportedArchs())


def _nvrtc() -> Any:
    try:
        from cupy.cuda import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as error:
        raise MissingDependency(
            f"compiling CUDA code requires NVRTC through cupy, which is not usable here ({error})",
            hint="pip install 'ansorpy[cuda]'",
        ) from error
    return nvrtc
