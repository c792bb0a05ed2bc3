"""Types of what nodes compute that no importer translates, as far as they are known."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from ansorpy.frontend.onnx.context import Unsupported, dtype_of
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Shape, TensorType
from ansorpy.ir.extents import Extent, least, most

__all__ = ["inferred_types", "stated_types", "warn_of_shape"]

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
    given = {
        name: helper.make_tensor_type_proto(
            helper.np_dtype_to_tensor_dtype(type_.dtype.numpy),
            [e if isinstance(e, int) else str(e) for e in type_.shape],
        )
        for name, type_ in types.items()
    }
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
    declared = output.type.tensor_type.shape.dim
    fits = len(declared) == len(made) and all(
        not dim.HasField("dim_value")
        or dim.dim_value < 0
        or least(size) <= dim.dim_value <= most(size)
        for dim, size in zip(declared, made, strict=True)
    )
    if output.type.tensor_type.HasField("shape") and not fits:
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in declared]
        _LOG.warning(
            "output %s has shape %s, though the model declares %s",
            output.name, list(made), sizes,
        )  # fmt: skip
