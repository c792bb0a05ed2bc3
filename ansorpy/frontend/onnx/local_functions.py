"""Functions that a model defines, with what onnx's inliner does not add or keep."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper

from ansorpy.frontend.onnx.nodes import all_of, bodies_of

__all__ = ["complete"]

_Key = tuple[str, str, str]
"""The domain, name and overload of a function."""


def complete(model: ModelProto) -> None:
    """Change *model* so that onnx's inliner keeps what its functions mean.

    Calls get the attributes that they leave out and that have defaults.  Bodies whose outputs are
    inputs, of which the inliner changes only some names, give copies.
    """
    defaults = {_key(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        for node in all_of(nodes):
            left_out = defaults.get(_key(node.domain, node.op_type, node.overload), ())
            _add_missing(node, left_out)
    for function in model.functions:
        for node in all_of(function.node):
            for body in bodies_of(node):
                _copy_given_outputs(body)


def _key(domain: str, name: str, overload: str) -> _Key:
    return ("" if domain == "ai.onnx" else domain), name, overload


def _add_missing(node: NodeProto, defaults: Iterable[AttributeProto]) -> None:
    given = {attribute.name for attribute in node.attribute}
    node.attribute.extend(a for a in defaults if a.name not in given)


def _copy_given_outputs(body: GraphProto) -> None:
    """Let nodes of *body* compute all its outputs."""
    made = {name for node in body.node for name in node.output}
    for number, output in enumerate(body.output):
        if output.name not in made:
            copy = f"{output.name}.{number}.copy"
            body.node.append(helper.make_node("Identity", [output.name], [copy]))
            output.name = copy
