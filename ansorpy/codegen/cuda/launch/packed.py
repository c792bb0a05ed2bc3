"""A GPU program packed as object code: its launch plan, then the cubin."""

from __future__ import annotations

from ansorpy.codegen.cuda.device.build import CudaCode
from ansorpy.codegen.cuda.launch.plan import LaunchPlan
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.codegen.packed import Packing

__all__ = ["PACKING", "packed"]

PACKING = Packing("a GPU program", b"ansorpy-cuda-1\n", LaunchPlan)


def packed(code: CudaCode, symbol: str) -> ObjectCode:
    """Pack *code* as an object named *symbol*; ``PACKING.unpack`` is the inverse."""
    whole, digest = PACKING.pack(code.plan, code.cubin)
    return ObjectCode(symbol, whole, code.plan.workspace_bytes, 0, code.build_s, digest)
