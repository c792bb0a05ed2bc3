"""Formal faults: what makes a model invalid, but not ambiguous, so that other engines run it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ansorpy.frontend.onnx.nodes import all_nodes, names_read
from ansorpy.frontend.onnx.reader import copied, without_weights

__all__ = ["mended"]

_LOG = logging.getLogger(__name__)
_LISTS_INITIALIZERS = 3
"""The last version of the format in which every initializer is an input as well."""


def mended(model: ModelProto) -> ModelProto:
    """A copy of *model* without its formal faults, each of which is logged; or *model* itself."""
    faults = [said for said, (is_at_fault, _) in _FAULTS.items() if is_at_fault(model)]
    if not faults:
        return model
    made = copied(model)
    for said in faults:
        _LOG.warning("the model has a formal fault, which is mended: %s", said)
        _FAULTS[said][1](made)
    return made


def _lists_too_few(model: ModelProto) -> bool:
    listed = {info.name for info in model.graph.input}
    names = {tensor.name for tensor in model.graph.initializer}
    return model.ir_version <= _LISTS_INITIALIZERS and not names <= listed


def _list_none(model: ModelProto) -> None:
    """Turn *model* into one of the next version of the format, which need not list any."""
    model.ir_version = _LISTS_INITIALIZERS + 1


def _has_no_name(model: ModelProto) -> bool:
    return not model.graph.name


def _name(model: ModelProto) -> None:
    model.graph.name = "graph"


def _has_equal_initializers(model: ModelProto) -> bool:
    """Whether initializers of one name are given several times, with the same values."""
    found: dict[str, TensorProto] = {}
    twice = [t for t in model.graph.initializer if found.setdefault(t.name, t) is not t]
    return bool(twice) and all(found[t.name] == t for t in twice)


def _keep_each_once(model: ModelProto) -> None:
    kept = list({tensor.name: tensor for tensor in model.graph.initializer}.values())
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def _names_standard_domain(model: ModelProto) -> bool:
    """Whether nodes name onnx's own domain in full, and the model imports it without its name."""
    imported = {opset.domain for opset in model.opset_import}
    return "" in imported and any(node.domain == "ai.onnx" for node in all_nodes(model.graph))


def _leave_out_standard_domain(model: ModelProto) -> None:
    for node in all_nodes(model.graph):
        if node.domain == "ai.onnx":
            node.domain = ""


def _is_unsorted(model: ModelProto) -> bool:
    """Whether some node stands before one that it reads from, and there is a right order."""
    return _sorted(model.graph) not in (None, list(model.graph.node))


def _sort(model: ModelProto) -> None:
    nodes = _sorted(model.graph) or []
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _sorted(graph: GraphProto) -> list[NodeProto] | None:
    """The nodes of *graph*, each after those that it reads from; None if there is a circle."""
    made = {name: n for n, node in enumerate(graph.node) for name in node.output if name}
    after = [{made[name] for name in names_read(node) if name in made} for node in graph.node]
    if all(n > before for n, reads in enumerate(after) for before in reads):
        return list(graph.node)
    sorter = TopologicalSorter(dict(enumerate(after)))
    try:
        sorter.prepare()
    except CycleError:
        return None
    order: list[NodeProto] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [graph.node[n] for n in ready]
        sorter.done(*ready)
    return order


def _lacks_types(model: ModelProto) -> bool:
    return any(output.type.WhichOneof("value") is None for output in model.graph.output)


def _infer_types(model: ModelProto) -> None:
    """Give outputs without a type that which follows from the nodes, as far as it is known."""
    light = without_weights(model)
    del light.graph.output[:]  # then onnx infers the types of all values
    try:
        inferred = onnx.shape_inference.infer_shapes(light)
    except onnx.shape_inference.InferenceError:
        return  # onnx's checker says what is wrong
    types = {info.name: info.type for info in inferred.graph.value_info}
    for output in model.graph.output:
        if output.type.WhichOneof("value") is None and output.name in types:
            output.type.CopyFrom(types[output.name])


_FAULTS: Mapping[str, tuple[Callable[[ModelProto], bool], Callable[[ModelProto], None]]] = {
    "initializers are missing from the inputs, where its version lists them": (
        _lists_too_few, _list_none,
    ),
    "its graph has no name": (_has_no_name, _name),
    "initializers are given twice": (_has_equal_initializers, _keep_each_once),
    "its nodes name the domain ai.onnx, which it imports by its empty name": (
        _names_standard_domain, _leave_out_standard_domain,
    ),
    "its nodes are not sorted": (_is_unsorted, _sort),
    "outputs have no type": (_lacks_types, _infer_types),
}  # fmt: skip
"""What may be wrong: whether it is, and how it is mended."""
