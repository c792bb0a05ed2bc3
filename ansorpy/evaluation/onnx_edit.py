"""Small edits of ONNX models: replace fields, expose a softmax's input as an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
from google.protobuf.message import Message

from ansorpy.arrays import Floats

__all__ = ["FinalSoftmax", "save", "softmax_inputs_as_outputs", "with_fields"]

_LARGE = 1 << 31
"""Bytes that one file cannot hold."""

# Operators that may come between a softmax and the output, as they change no values.
_VIEWS = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze")


@dataclass(frozen=True)
class FinalSoftmax:
    """The softmax that computes an output: the name of its ``input`` and the axes it sums over.

    Before opset 13, a softmax sums over all axes from ``axis`` on; since then, only over ``axis``.
    """

    input: str
    axis: int
    flattens: bool

    def rows(self, array: Floats) -> Floats:
        """Reshape *array* as the softmax's input, with one normalized group per row."""
        if self.flattens:
            return array.reshape(int(np.prod(array.shape[: self.axis], dtype=np.int64)), -1)
        return np.moveaxis(array, self.axis, -1).reshape(-1, array.shape[self.axis])


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write *model* to *path*, with its weights in a second file if one cannot hold everything."""
    onnx.save(model, path, save_as_external_data=model.ByteSize() >= _LARGE)


def softmax_inputs_as_outputs(
    model: onnx.ModelProto,
) -> tuple[onnx.ModelProto, dict[str, FinalSoftmax]]:
    """A copy of *model* with the inputs of final softmaxes added as outputs, and these softmaxes.

    A saturated softmax returns ones and zeros whatever the error of its input, so a comparison
    must check the input too.  A model without such a softmax is returned unchanged.
    """
    graph = model.graph
    producer = {output: node for node in graph.node for output in node.output}
    named = {output.name for output in graph.output}
    stated = {info.name: info for info in graph.value_info}
    found, added = {}, []
    for output in graph.output:
        node = producer.get(output.name)
        while node is not None and node.op_type in _VIEWS:
            node = producer.get(node.input[0])
        if node is None or node.op_type != "Softmax":
            continue
        found[output.name] = _final_softmax(model, node)
        if node.input[0] not in named:
            named.add(node.input[0])
            added.append(stated.get(node.input[0]) or _unshaped(node.input[0], output.type))
    return (with_fields(model, output=[*graph.output, *added]) if added else model), found


def _unshaped(name: str, kind: onnx.TypeProto) -> onnx.ValueInfoProto:
    """Declare *name*, a tensor of *kind* but for its shape: views may have changed that."""
    declared = onnx.helper.make_value_info(name, kind)
    if declared.type.HasField("tensor_type"):
        declared.type.tensor_type.ClearField("shape")
    return declared


def _final_softmax(model: onnx.ModelProto, node: onnx.NodeProto) -> FinalSoftmax:
    opset = next(i.version for i in model.opset_import if i.domain in ("", "ai.onnx"))
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1 if opset < 13 else -1)
    return FinalSoftmax(node.input[0], int(axis), opset < 13)


def with_fields(model: onnx.ModelProto, **fields: Sequence[Message]) -> onnx.ModelProto:
    """Copy *model* with the contents of the graph's repeated *fields* replaced."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    # Before version 4 of the format, every initializer had to be a graph input as well.
    result.ir_version = max(result.ir_version, 4)
    for name, values in fields.items():
        result.graph.ClearField(name)
        getattr(result.graph, name).extend(values)
    return result
