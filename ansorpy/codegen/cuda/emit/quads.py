"""Values combined by the four lanes that share a row of a fragment, as helper functions."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.emit.mma import function_name
from ansorpy.ir.expr import ReduceKind
from ansorpy.ir.fragments import fragment_registers
from ansorpy.ir.intrinsics import QUADS, Intrinsic

__all__ = ["QUAD_HELPERS", "QUAD_NEEDS"]

_COMBINED = {ReduceKind.MAX: "maximum({a}, {b})", ReduceKind.SUM: "{a} + {b}"}


def _function(kind: ReduceKind, by: Intrinsic) -> str:
    """The helper function of one kind; each lane passes its own values and gets the results."""
    rows = fragment_registers(by.fragments[0])

    def combined(a: str, b: str) -> str:
        return _COMBINED[kind].format(a=a, b=b)

    def of_other(x: str, distance: int) -> str:
        return f"__shfl_xor_sync(0xffffffff, {x}, {distance})"

    return f"""\
// Combines the values of the four lanes that share a row, in each of them.
__device__ __forceinline__ void {function_name(by.name)}(
    float (&to)[{rows}], const float (&value)[{rows}]) {{
  #pragma unroll
  for (int n = 0; n < {rows}; ++n) {{
    float all = {combined("value[n]", of_other("value[n]", 1))};
    all = {combined("all", of_other("all", 2))};
    to[n] = {combined("to[n]", "all")};
  }}
}}"""


QUAD_HELPERS: Mapping[str, str] = {
    function_name(by.name): _function(kind, by) for (kind, _), by in QUADS.items()
}
"""In order of emission."""

QUAD_NEEDS: Mapping[str, tuple[str, ...]] = {
    function_name(by.name): ("extrema",)
    for (kind, _), by in QUADS.items()
    if kind is ReduceKind.MAX
}
