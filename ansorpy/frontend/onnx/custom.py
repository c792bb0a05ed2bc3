"""Operators that users register, translated by the functions that define them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx import NodeProto, helper

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.custom import Attribute, Custom, reads, unread
from ansorpy.graph.ops import TensorType
from ansorpy.ir.extents import most
from ansorpy.registry import Registry

__all__ = ["CUSTOM", "Definition", "import_custom"]

Definition = Callable[..., object]
"""Makes the tensors that an operator computes: operands are arguments, attributes keywords."""

CUSTOM: Registry[object] = Registry("custom operator", {})
"""The functions that users registered, by domain and name: ``com.example.Scale``."""


def import_custom(ctx: NodeContext, name: str) -> tuple[str, ...]:
    """The values of a node of the custom operator *name*.

    Raises:
        UsageError: Its function fails, or returns something else than the node's outputs.
    """
    function: Definition = CUSTOM.factory(name)
    given = tuple(map(bool, ctx.node.input))
    for value in ctx.inputs:
        shape = ctx.type_of(value).shape
        if any(most(extent) < 1 for extent in shape):
            raise Unsupported(f"operand of shape {shape}", "give operands that have elements")
    op = Custom(name, function, _attributes(ctx.node), given)
    _demand_arguments(op)
    inputs = [unread(ctx.type_of(value)) for value in ctx.inputs]
    made = op.results(inputs)
    if len(made) < len(ctx.node.output):
        raise UsageError(
            f"the function of operator {name} returned {_tensors(len(made))}, but the node "
            f"{ctx.node.name or ctx.node.output[0]} has {len(ctx.node.output)} outputs",
            hint="return a tuple with a tensor for each output",
        )
    results = tuple(
        _emitted(ctx, replace(op, index=index), [reads(made[index], x) for x in inputs])
        for index in range(len(ctx.node.output))
    )
    for output, value in zip(ctx.node.output, results, strict=True):
        _demand_declared(name, output, ctx.type_of(value), ctx.stated.get(output))
    return results


def _emitted(ctx: NodeContext, op: Custom, are_read: Sequence[bool]) -> str:
    """A value that *op* computes from those of the node's operands that it reads."""
    every = list(zip(ctx.inputs, are_read, strict=True))
    held = (is_read or ctx.type_of(value) for value, is_read in every)
    operands = tuple(is_given and next(held) for is_given in op.operands)
    return ctx.emit(replace(op, operands=operands), [value for value, is_read in every if is_read])


def _tensors(count: int) -> str:
    return "one tensor" if count == 1 else f"{count} tensors"


def _attributes(node: NodeProto) -> tuple[tuple[str, Attribute], ...]:
    return tuple((held.name, _attribute(held.name, helper.get_attribute_value(held)))
                 for held in node.attribute)  # fmt: skip


def _attribute(name: str, value: object) -> Attribute:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, list) and all(isinstance(v, int | float | bytes) for v in value):
        return tuple(v.decode(errors="replace") if isinstance(v, bytes) else v for v in value)
    raise Unsupported(f"attribute {name}", "give it as an operand: functions get numbers and texts")


def _demand_arguments(op: Custom) -> None:
    """Refuse operands and attributes that the function does not take.

    Raises:
        UsageError: It takes others.
    """
    signature = inspect.signature(op.function)
    try:
        signature.bind(*op.operands, **dict(op.attributes))
    except TypeError as error:
        raise UsageError(
            f"the function of operator {op.name} takes {signature}, but a node has "
            f"{len(op.operands)} operands and the attributes "
            f"{', '.join(key for key, _ in op.attributes) or '(none)'}: {error}",
            hint="operands are its positional arguments, attributes its keywords",
        ) from None


def _demand_declared(name: str, output: str, made: TensorType, declared: TensorType | None) -> None:
    """Refuse a result of the operator *name* that is not of the type that the model declares.

    Raises:
        UsageError: *output* has another shape or element type.
    """
    if declared is not None and (made.shape, made.dtype) != (declared.shape, declared.dtype):
        raise UsageError(
            f"the function of operator {name} gives {_described(made)} for {output}, but the model "
            f"declares {_described(declared)}",
            hint="change the function, or what the model declares",
        )


def _described(kind: TensorType) -> str:
    return f"{kind.dtype.value}{[*kind.shape]}"
