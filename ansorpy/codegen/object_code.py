"""The object code of one function, which is stored, sent to workers and loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

from ansorpy.ir.extents import AnyExtent

__all__ = ["KERNEL", "ObjectCode"]

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
"""The kernel ABI: a status from addresses of arguments, the workspace, and a number of threads."""


@dataclass(frozen=True)
class ObjectCode:
    """Code that defines *symbol*; the backend decides the format of its bytes.

    On a CPU it has the kernel ABI, ``int32_t symbol(void *const *args, void *workspace, int32_t
    threads)``; workspace has ``shared_bytes + threads * thread_bytes`` bytes on a 64-byte boundary.
    Those of a program with dimensions depend on the sizes of the call.
    For a GPU program, ``code`` is what :func:`ansorpy.codegen.cuda.launch.packed.packed` makes.
    ``listing`` makes the code again as LLVM IR, where that is known; it stays in this process.
    """

    symbol: str
    code: bytes
    shared_bytes: AnyExtent
    thread_bytes: int
    build_s: float
    digest: str
    listing: Callable[[], str] | None = field(default=None, compare=False, repr=False)

    def workspace_bytes(self, threads: int) -> AnyExtent:
        """Bytes of workspace that a call with *threads* threads needs, by the sizes of the call."""
        return self.shared_bytes + threads * self.thread_bytes
