"""Status codes of the C interface, their meanings, and the exceptions they become."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ansorpy.errors import AnsorpyError, CodegenError, MissingDependency, OutOfBounds
from ansorpy.ir.symbols import Dim

__all__ = ["Status", "status_error"]


class Status(IntEnum):
    """Status returned by a function of the C interface."""

    OK = 0
    WRONG_CPU = 1
    NOT_INITIALISED = 2
    BAD_THREADS = 3
    NULL_POINTER = 4
    WRONG_SHAPE = 5
    NO_GPU = 6
    GPU_FAILED = 7
    WRONG_CONSTANTS = 8
    TOO_SMALL = 9
    NOT_SHARED = 10
    OUT_OF_BOUNDS = 11
    NO_MEMORY = 12

    @property
    def meaning(self) -> str:
        """One-line description, for the header."""
        return _MEANINGS[self]


_MEANINGS = {
    Status.OK: "success",
    Status.WRONG_CPU: "this CPU, or its operating system, lacks instructions the code uses",
    Status.NOT_INITIALISED: "init was not called, or failed",
    Status.BAD_THREADS: "threads is below 1",
    Status.NULL_POINTER: "a context, a tensor table, a tensor's data or context_bytes is NULL",
    Status.WRONG_SHAPE: "an input's shape, or an output's in its memory, is not one compiled for",
    Status.NO_GPU: "no CUDA driver, no GPU that runs the code, or a wrong ANSORPY_DEVICE",
    Status.GPU_FAILED: "the CUDA driver refused a call, or a kernel failed",
    Status.WRONG_CONSTANTS: "the constants are not those that belong to the program",
    Status.TOO_SMALL: "an output has more elements than its shape gave room for",
    Status.NOT_SHARED: "an output does not begin where the input does whose memory it shares",
    Status.OUT_OF_BOUNDS: "a size that the data of the call tell is out of its bounds",
    Status.NO_MEMORY: "there is too little memory to pack the constants",
}


def status_error(
    name: str, code: int, missing: list[str], counted: Sequence[Dim] = ()
) -> AnsorpyError:
    """Make the exception for status *code* of program *name*.

    Args:
        missing: Absent CPU features.
        counted: The dimensions whose sizes the data of a call tell.
    """
    if code == Status.WRONG_CPU:
        lacking = ", ".join(missing) or "features it needs"
        return MissingDependency(
            f"{name} was built for a CPU with instructions this machine lacks: {lacking}",
            hint="compile it here, or for a lower target such as --target x86-64-v3 "
            "(target= in Python)",
        )
    if code == Status.NO_GPU:
        return MissingDependency(
            f"{name} needs a GPU of the kind it was compiled for and the CUDA driver "
            "(libcuda.so.1)",
            hint="run nvidia-smi to see the GPU and the driver of this machine; ANSORPY_DEVICE, "
            "if set, must be the number of such a GPU",
        )
    if code == Status.OUT_OF_BOUNDS:
        return OutOfBounds(
            f"{name}: {Status(code).meaning}: {', '.join(map(str, counted))}",
            hint="compile it with --bound for larger ones (bounds= in Python)",
        )
    known = f": {Status(code).meaning}" if code in set(Status) else ""
    return CodegenError(f"{name} failed with code {code}{known}")
