"""The error that names every node that cannot be compiled, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from onnx import NodeProto

from ansorpy.constants import constant_flags
from ansorpy.errors import ForeignFile, UnsupportedModel, UnsupportedRow
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import TensorType
from ansorpy.ir.extents import most
from ansorpy.size_bounds import bound_flag

__all__ = ["LARGEST_OPERAND", "advice_of", "failed", "pinnable", "unsupported"]

LARGEST_OPERAND = 1 << 10
"""Elements of constants that may determine a shape."""


def unsupported(rows: Sequence[UnsupportedRow]) -> UnsupportedModel:
    """The error whose table has *rows*; those with the same operator and message become one."""
    return UnsupportedModel(
        f"{len(rows)} node{'s' if rows[1:] else ''} of the model cannot be compiled",
        rows=_grouped(rows),
        hint=_hint(rows),
    )


def failed(node: NodeProto, error: Exception) -> ForeignFile:
    """The error for *node*, on which its importer has failed: importers rely on attributes and
    operands being such as the operator takes."""
    name = node.name or ", ".join(filter(None, node.output))
    return ForeignFile(
        f"the ONNX model is not valid: {node.op_type} {name}: {type(error).__name__}: {error}",
        hint="its operator does not take such attributes or operands; if it does, please report "
        "it: ANSORPY_DEBUG=1 shows the traceback",
    )


def _hint(rows: Sequence[UnsupportedRow]) -> str:
    """What to do about all *rows* together."""
    if all(row.needs for row in rows):
        names = dict.fromkeys(name for row in rows for name in row.needs)
        return f"the nodes need inputs that are known when you compile: {constant_flags(names)}"
    return "change these nodes in the exporting program, or remove them from the model"


def _grouped(rows: Iterable[UnsupportedRow]) -> list[UnsupportedRow]:
    """One row for each operator and message, of the first node, with the number of nodes."""
    groups: dict[tuple[str, str, str, str], list[UnsupportedRow]] = {}
    for row in rows:
        groups.setdefault((row.domain, row.op, row.attribute, row.advice), []).append(row)
    return [replace(found[0], count=len(found)) for found in groups.values()]


def advice_of(reason: Unsupported, needs: Sequence[str], bound: str) -> str:
    """What to do about *reason*, which the values of the inputs *needs* would avoid.

    Args:
        bound: The tensor whose bound would avoid it, too; empty if there is none.
    """
    said = f"give its value: {constant_flags(needs)}" if needs else reason.advice
    return f"{said}, or a bound: {bound_flag(bound)}" if bound else said


def pinnable(
    values: Iterable[str], names: Mapping[str, str], types: Mapping[str, TensorType]
) -> tuple[str, ...]:
    """The inputs that *values* are, if all of them are such that may determine a shape.

    These are small, and no more than lists: what has several axes is data.

    Args:
        names: The names of inputs by their values.
    """
    found = tuple(values)
    small = all(
        value in names
        and len(types[value].shape) <= 1
        and most(types[value].size) <= LARGEST_OPERAND
        for value in found
    )
    return tuple(names[value] for value in found) if small else ()
