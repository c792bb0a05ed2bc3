"""A node with other operands, for importers that are defined by those of other operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onnx import NodeProto, helper

from ansorpy.frontend.onnx.context import NodeContext

__all__ = ["with_operands"]


def with_operands(ctx: NodeContext, given: Mapping[int, str], **attributes: Any) -> NodeContext:
    """*ctx* whose node has the values *given* as operands, by number, and further *attributes*."""
    node = NodeProto()
    node.CopyFrom(ctx.node)
    values = {name: ctx.values[name] for name in node.input if name}
    for operand, value in given.items():
        node.input.extend([""] * (operand + 1 - len(node.input)))
        node.input[operand] = f"{operand} of {node.output[0]}"
        values[node.input[operand]] = value
    node.attribute.extend(helper.make_attribute(name, held) for name, held in attributes.items())
    return replace(ctx, node=node, values=values)
