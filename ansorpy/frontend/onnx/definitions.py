"""Operators that onnx defines by other operators, replaced by their definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from google.protobuf.message import EncodeError
from onnx import FunctionProto, ModelProto, NodeProto, TypeProto, helper, inliner

from ansorpy.frontend.onnx.nodes import all_of

__all__ = ["with_definitions"]

_DOMAIN = "ansorpy.definitions"
"""The domain of functions that stand for one node each, until they are inlined."""


def with_definitions(model: ModelProto, unknown: Iterable[NodeProto]) -> ModelProto:
    """*model* with nodes whose operators onnx defines by others in place of those of *unknown*.

    Other nodes stay.
    """
    defined = {
        (node.domain, node.op_type) for node in unknown if _is_defined(node.op_type, node.domain)
    }
    if not defined:
        return model
    try:
        typed = onnx.shape_inference.infer_shapes(model)  # some definitions depend on types
        return inliner.inline_selected_functions(
            _with_typed(typed, defined), sorted(defined), inline_schema_functions=True
        )
    except (
        EncodeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError,
        RuntimeError,
    ):  # fmt: skip
        return model  # the importer names the nodes


def _is_defined(operator: str, domain: str) -> bool:
    """Whether onnx defines *operator* by other operators."""
    if not onnx.defs.has(operator, domain):
        return False
    schema: Any = onnx.defs.get_schema(operator, domain)  # its annotations lack these properties
    return bool(schema.has_function or schema.has_context_dependent_function)


def _with_typed(model: ModelProto, defined: Iterable[tuple[str, str]]) -> ModelProto:
    """*model* without nodes of *defined* operators whose definitions depend on operands' types.

    onnx's inliner knows the types neither of operands that are left out nor of constants, and
    fails.
    """
    types = _types(model)
    for node in model.graph.node:
        if (node.domain, node.op_type) in defined:
            function = _definition(node, types, model)
            if function is not None:
                function.name = f"{node.op_type}_{len(model.functions)}"
                function.domain = node.domain = _DOMAIN
                node.op_type = function.name
                model.functions.append(function)
    if not any(function.domain == _DOMAIN for function in model.functions):
        return model
    model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return inliner.inline_local_functions(model)


def _types(model: ModelProto) -> Mapping[str, TypeProto]:
    """The types of the values of *model*'s graph, as far as they are known."""
    graph = model.graph
    held = {t.name: helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer}
    return {**held, **{info.name: info.type for info in (*graph.input, *graph.value_info)}}


def _definition(
    node: NodeProto, types: Mapping[str, TypeProto], model: ModelProto
) -> FunctionProto | None:
    """The function that onnx makes for *node*, which gets the attributes that it leaves out."""
    versions = {opset.domain: opset.version for opset in model.opset_import}
    schema: Any = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
    if not schema.has_context_dependent_function:
        return None
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)
    operands = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
    function = FunctionProto()
    function.ParseFromString(
        schema.get_context_dependent_function(node.SerializeToString(), operands)
    )
    return _in_versions(function, versions)


def _in_versions(function: FunctionProto, versions: Mapping[str, int]) -> FunctionProto | None:
    """*function* in the operator sets of its model; None if one of its operators was another then.

    onnx writes definitions in the operator set in which they were new, and later ones seldom change
    more than the types that an operator takes.
    """
    for opset in function.opset_import:
        wanted = versions.get(opset.domain, opset.version)
        used = {n.op_type for n in all_of(function.node) if n.domain == opset.domain}
        forms = (_form(name, opset.domain, v) for v in (opset.version, wanted) for name in used)
        if len(set(forms)) != len(used):
            return None
        opset.version = wanted
    return function


def _form(operator: str, domain: str, version: int) -> tuple[str, ...]:
    """The operator's name, and those of its operands, results and attributes."""
    schema = onnx.defs.get_schema(operator, version, domain)
    ports = [port.name for port in (*schema.inputs, *schema.outputs)]
    return (operator, *ports, *sorted(schema.attributes))
