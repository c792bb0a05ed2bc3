"""Types of what nodes compute that no importer translates, as far as they are known."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from ansorpy.frontend.onnx.context import dtype_of
from ansorpy.frontend.onnx.shapes import may_have, stated_axes
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Shape, TensorType
from ansorpy.ir.extents import Extent, least

__all__ = ["inferred_types", "proto_of", "stated_types", "warn_of_shape"]

_LOG = logging.getLogger(__name__)


def stated_types(model: ModelProto) -> dict[str, TensorType]:
    """The types that *model* states for its values."""
    infos = (*model.graph.value_info, *model.graph.output)
    return dict(_typed({info.name: info.type for info in infos}, {}))


def inferred_types(
    model: ModelProto,
    node: NodeProto,
    types: Mapping[str, TensorType],
    constants: Mapping[str, Array],
) -> dict[str, TensorType]:
    """The types that onnx infers for the results of *node* of *model*.

    onnx is given one node at a time: for whole models it can compute the values of shapes, which
    takes as long, and as much memory, as a large size in the model says.

    Args:
        types: Types of the node's operands; a missing one may leave the results unknown.
        constants: Operands whose values are known and may determine a shape.
    """
    domains = {opset.domain: opset.version for opset in model.opset_import}
    version = domains.get(node.domain, domains.get("", 1))
    versions = (model.ir_version, *(opset.version for opset in model.opset_import))
    if any(abs(number) >= 2**31 for number in versions):  # onnx takes no others
        return {}
    given = {name: proto_of(kind) for name, kind in types.items()}
    extents = {str(e): e for type_ in types.values() for e in type_.shape}
    data = {n: numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()}
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        made = onnx.shape_inference.infer_node_outputs(
            schema, node, given, data,
            opset_imports=[*model.opset_import], ir_version=model.ir_version,
        )  # fmt: skip
    except (
        onnx.defs.SchemaError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError,
        KeyError, ValueError,
    ):  # fmt: skip
        return {}
    return dict(_typed(made, extents))


def proto_of(kind: TensorType) -> TypeProto:
    """The type as onnx states it, where open extents are dimensions named by their text."""
    code = helper.np_dtype_to_tensor_dtype(kind.dtype.numpy)
    dims = [extent if isinstance(extent, int) else str(extent) for extent in kind.shape]
    return helper.make_tensor_type_proto(code, dims)


def _typed(
    types: Mapping[str, TypeProto], extents: Mapping[str, Extent]
) -> Iterator[tuple[str, TensorType]]:
    """Those of *types* that are tensors of a type that can be compiled, all of their sizes known.

    Args:
        extents: What the names of dimensions stand for.
    """
    for name, proto in types.items():
        tensor = proto.tensor_type
        shape = tuple(d.dim_value or extents.get(d.dim_param, 0) for d in tensor.shape.dim)
        if tensor.HasField("shape") and all(e != 0 and least(e) >= 0 for e in shape):
            with suppress(Unsupported):
                yield name, TensorType(shape, dtype_of(tensor.elem_type))


def warn_of_shape(output: ValueInfoProto, made: Shape) -> None:
    """Say if *output* has another shape than the model declares: what reads it may not fit."""
    stated = stated_axes(output)
    if stated is not None and not may_have(stated, made):
        _LOG.warning(
            "output %s has shape %s, though the model declares %s",
            output.name, list(made), list(stated),
        )  # fmt: skip
