"""Inputs that are sequences of tensors: each tensor becomes an input of its own, ``x.0, x.1, ..``.

So does the tensor of an optional input that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.reader import copied
from ansorpy.frontend.onnx.shapes import network_inputs
from ansorpy.size_ranges import AnySize, is_list

__all__ = ["is_listed", "tensor_names", "with_tensors"]

Shapes = Mapping[str, Any]


def tensor_names(name: str, count: int) -> list[str]:
    """The names of the *count* inputs or outputs that stand for the sequence *name*."""
    return [f"{name}.{number}" for number in range(count)]


def with_tensors(
    model: ModelProto, shapes: Shapes | None
) -> tuple[ModelProto, dict[str, Sequence[AnySize]]]:
    """A copy of *model* with tensors in place of its sequences and optional values; and its shapes.

    It is *model* itself if it has none of which *shapes* tells the tensors.

    Args:
        shapes: For each sequence, a list with the shape of each of its tensors; for an optional
            tensor, a list with its shape; for an optional value that has none, None; for a tensor,
            its shape.

    Raises:
        UsageError: An input is no list of shapes.
    """
    given = dict(shapes or {})
    listed = [i.name for i in network_inputs(model) if is_listed(i.type) and i.name in given]
    if not listed:
        return model, given
    inputs: list[ValueInfoProto] = []
    nodes: list[NodeProto] = []
    for info in model.graph.input:
        if info.name not in listed:
            inputs.append(info)
            continue
        tensors, more = _parts(info, given.pop(info.name))
        given |= tensors
        inputs += [_tensor(name, info.type, len(shape)) for name, shape in tensors.items()]
        nodes += more
    return copied(model, nodes=[*nodes, *model.graph.node], inputs=inputs), given


def is_listed(kind: TypeProto) -> bool:
    """Whether *kind* is a sequence or an optional value."""
    return bool(kind.HasField("sequence_type") or kind.HasField("optional_type"))


def _element(kind: TypeProto) -> TypeProto:
    """The type of the tensors in a sequence or optional value."""
    while is_listed(kind):
        one = kind.sequence_type if kind.HasField("sequence_type") else kind.optional_type
        kind = one.elem_type
    return kind


def _tensor(name: str, kind: TypeProto, rank: int) -> ValueInfoProto:
    code = _element(kind).tensor_type.elem_type
    return helper.make_tensor_value_info(name, code, [f"{name}.{axis}" for axis in range(rank)])


def _parts(
    info: ValueInfoProto, shapes: Any
) -> tuple[dict[str, Sequence[AnySize]], list[NodeProto]]:
    """The tensors that stand for *info*, and the nodes that make it of them."""
    kind, is_optional = info.type, info.type.HasField("optional_type")
    held = kind.optional_type.elem_type if is_optional else kind
    if shapes is None and is_optional:
        return {}, [helper.make_node("Optional", [], [info.name], type=held)]
    if not is_list(shapes) or not all(map(is_list, shapes)):
        raise UsageError(
            f"input {info.name!r} is no tensor", hint="give a list of the shapes of its tensors"
        )
    names = tensor_names(info.name, len(shapes))
    made = f"{info.name}.value" if is_optional else info.name
    if not held.HasField("sequence_type"):
        nodes = [helper.make_node("Identity", names, [made])]
    elif shapes:
        nodes = [helper.make_node("SequenceConstruct", names, [made])]
    else:
        code = _element(kind).tensor_type.elem_type
        nodes = [helper.make_node("SequenceEmpty", [], [made], dtype=code)]
    if is_optional:
        nodes.append(helper.make_node("Optional", [made], [info.name], type=held))
    return dict(zip(names, shapes, strict=True)), nodes
