"""Operators that onnxruntime had before onnx: translated as onnx defines them by others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import helper

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.control.scopes import Translator
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.definitions import with_definitions
from ansorpy.frontend.onnx.result_types import proto_of
from ansorpy.frontend.onnx.unsupported import Unsupported

__all__ = ["OPERATORS"]

_ADOPTED: Mapping[str, Mapping[str, int]] = {
    "CausalConvWithState": {"ndim": 1, "dilation": 1, "channels_last": 0, "state_window": 0},
    "LinearAttention": {"state_window": 0},
}
"""The operators, and the only values of attributes that onnx's operators lack."""
_LEAST_OPSET = 18
"""From this operator set on, the operators in definitions have the forms that they have now."""


def adopted(translator: Translator, ctx: NodeContext) -> list[Value]:
    """The results of the nodes that onnx defines the operator by."""
    if ctx.opset < _LEAST_OPSET:
        raise Unsupported(f"operator set {ctx.opset}", f"export with {_LEAST_OPSET} or later")
    own = _ADOPTED[ctx.node.op_type]
    for name, usual in own.items():
        if ctx.attr(name, usual) != usual:
            raise Unsupported(f"{name}={ctx.attr(name, usual)}", f"use {usual}")
    node = helper.make_node(ctx.node.op_type, ctx.node.input, ctx.node.output)
    node.attribute.extend(a for a in ctx.node.attribute if a.name not in own)
    given = {name: ctx.values[name] for name in node.input if name}
    inputs = [helper.make_value_info(n, proto_of(ctx.type_of(v))) for n, v in given.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], ctx.node.op_type, inputs, outputs)
    schema: Any = onnx.defs.get_schema(node.op_type)  # its annotations lack this property
    opsets = [helper.make_opsetid("", schema.since_version)]
    body = with_definitions(helper.make_model(graph, opset_imports=opsets), graph.node).graph
    made = iter(translator.inlined(body, given))
    return [next(made) if name else "" for name in node.output]


OPERATORS = {f"com.microsoft.{name}": adopted for name in _ADOPTED}
