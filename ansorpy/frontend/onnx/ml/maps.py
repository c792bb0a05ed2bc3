"""Outputs that are maps from class to score, as scikit-learn's classifiers are exported."""

from __future__ import annotations

import logging

from onnx import ModelProto, NodeProto, TensorProto, helper

from ansorpy.frontend.onnx.ml.shared import DOMAIN
from ansorpy.frontend.onnx.reader import copied

__all__ = ["without_maps"]

_LOG = logging.getLogger(__name__)


def without_maps(model: ModelProto) -> ModelProto:
    """*model* with matrices of scores in place of maps: a row for each sample, a column for each
    class in the order of the map's labels."""
    mapped = {node.output[0] for node in model.graph.node if _is_map(node)}
    if not mapped:
        return model
    plain = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    changed = copied(model)
    for node in filter(_is_map, changed.graph.node):
        node.CopyFrom(helper.make_node("Identity", node.input, node.output, node.name))
    for output in changed.graph.output:
        if output.name in mapped:
            output.type.CopyFrom(plain)
            _LOG.warning("output %s is a matrix with a column for each class, no map", output.name)
    return changed


def _is_map(node: NodeProto) -> bool:
    return (node.domain, node.op_type) == (DOMAIN, "ZipMap")
