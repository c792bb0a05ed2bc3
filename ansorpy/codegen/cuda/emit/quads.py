"""Values combined by the four lanes that share a row of a fragment, as helper functions."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.emit.mma import function_name
from ansorpy.ir.expr import ReduceKind
from ansorpy.ir.intrinsics import QUADS

__all__ = ["QUAD_HELPERS", "QUAD_NEEDS"]

_COMBINED = {ReduceKind.MAX: "maximum({a}, {b})", ReduceKind.SUM: "{a} + {b}"}


def _function(kind: ReduceKind) -> str:
    """The helper function of one kind; each lane passes its own value and gets the result."""

    def combined(a: str, b: str) -> str:
        return _COMBINED[kind].format(a=a, b=b)

    def of_other(x: str, distance: int) -> str:
        return f"__shfl_xor_sync(0xffffffff, {x}, {distance})"

    return f"""\
// Combines the values of the four lanes that share a row, in each of them.
__device__ __forceinline__ void {function_name(QUADS[kind].name)}(
    float (&to)[1], const float (&value)[1]) {{
  float all = {combined("value[0]", of_other("value[0]", 1))};
  all = {combined("all", of_other("all", 2))};
  to[0] = {combined("to[0]", "all")};
}}"""


QUAD_HELPERS: Mapping[str, str] = {
    function_name(by.name): _function(kind) for kind, by in QUADS.items()
}
"""In order of emission."""

QUAD_NEEDS: Mapping[str, tuple[str, ...]] = {
    function_name(QUADS[ReduceKind.MAX].name): ("extrema",),
}
