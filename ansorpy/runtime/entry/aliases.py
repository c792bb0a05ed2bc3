"""Outputs in the memory of inputs: checks of a call, and the capacities that it states."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.ir.alias import Alias
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.entry.sizes import Sizes
from ansorpy.runtime.entry.tensors import difference, extent_of
from ansorpy.runtime.entry.text import require
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.status import Status

__all__ = ["check_aliases"]


def check_aliases(
    text: FunctionText,
    plan: ExecutionPlan,
    sizes: Sizes,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Check that outputs begin where their inputs do; add the capacities to *sizes*.

    Args:
        inputs: The address of each input.
        outputs: That of each output, whose shapes are still those that the caller gave.
    """
    for alias in plan.aliases:
        is_same = f"icmp eq ptr {inputs[alias.input]}, {outputs[alias.output]}"
        require(text, is_same, Status.NOT_SHARED)
        if plan.is_apart(alias):
            _check_shape(text, plan, alias, sizes)
    for dim, aliases in plan.capacities.items():
        sizes.add(dim, _capacity(text, dim, aliases))


def _check_shape(text: FunctionText, plan: ExecutionPlan, alias: Alias, sizes: Sizes) -> None:
    """Check the extents of which strides are made, apart from a capacity."""
    axes = [
        (axis, extent)
        for axis, extent in enumerate(plan.outputs[alias.output].shape)
        if axis != alias.axis or alias.capacity is None
    ]
    given = [extent_of(text, "%outputs", alias.output, axis) for axis, _ in axes]
    wanted = [sizes.value(extent) for _, extent in axes]
    different = difference(text, given, wanted)
    require(text, f"icmp eq i64 {different}, 0", Status.WRONG_SHAPE)


def _capacity(text: FunctionText, dim: Dim, aliases: Sequence[Alias]) -> str:
    """The capacity that all of *aliases* state, which is in the range of *dim*."""
    given = [extent_of(text, "%outputs", alias.output, alias.axis) for alias in aliases]
    different = difference(text, given[1:], given[:1] * (len(given) - 1))
    require(text, f"icmp eq i64 {different}, 0", Status.WRONG_SHAPE)
    require(text, f"icmp sle i64 {given[0]}, {dim.high}", Status.WRONG_SHAPE)
    return given[0]
