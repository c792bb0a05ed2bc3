"""Load, run and unload code that is needed only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.object_code import KERNEL, ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.ir.sizes import fixed

__all__ = ["run_once"]


def run_once(code: ObjectCode, arrays: Sequence[npt.NDArray[Any]]) -> None:
    """Run *code* on one thread; *arrays*, one per parameter, come from ``aligned_empty``.

    Raises:
        CodegenError: The code returned an error code.
    """
    table = np.array([array.ctypes.data for array in arrays], dtype=np.uint64)
    workspace = aligned_empty((max(1, fixed(code.workspace_bytes(1))),), np.uint8)
    with load([code]) as library:
        function = KERNEL(library.address(code.symbol))
        status = function(table.ctypes.data, workspace.ctypes.data, 1)
    if status:
        raise CodegenError(f"{code.symbol} returned the error code {status}")
