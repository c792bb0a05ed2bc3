"""Nodes of a growing network: what they read, what onnx infers of them, how they are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tests.campaigns.networks.values import Unstable, Value, is_float, off_by

__all__ = [
    "Shape",
    "all_of",
    "info_of",
    "inferred",
    "misread",
    "noisy",
    "opsets",
    "pads_lower",
    "reads",
    "traced",
]

Shape = tuple[int | None, ...]
"""Sizes; None where they are not known."""

_DOMAINS = {"com.microsoft": 1, "ai.onnx.preview.training": 1, "ai.onnx.preview": 1}


_PLAIN = ("hidden_size", "layout", "linear_before_reset")
"""The attributes of recurrent networks that onnx's reference heeds."""


def opsets(nodes: Iterable[NodeProto], opset: int) -> list[onnx.OperatorSetIdProto]:
    """The operator sets of a model of *nodes*; trees changed in version 5 of ai.onnx.ml."""
    versions = {**_DOMAINS, "ai.onnx.ml": 3 if opset < 22 else 5}
    others = {domain for node in nodes for domain in _domains(node)} - {""}
    return [helper.make_opsetid("", opset), *(helper.make_opsetid(d, versions[d]) for d in others)]


def _domains(node: NodeProto) -> set[str]:
    found = {node.domain}
    for graph in _bodies(node):
        found.update(*map(_domains, graph.node))
    return found


def _bodies(node: NodeProto) -> list[GraphProto]:
    return [a.g for a in node.attribute if a.type == AttributeProto.GRAPH]


def reads(node: NodeProto) -> set[str]:
    """The names that *node* and its bodies read; those that a body makes are among them."""
    found = set(node.input)
    for graph in _bodies(node):
        found.update(*map(reads, graph.node))
    return found


def info_of(value: Value, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    """The type of *value*, with its shape or *shape*."""
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, kind, value.shape if shape is None else shape)


def inferred(
    nodes: Sequence[NodeProto], operands: Sequence[Value | None], held: Sequence[TensorProto],
    opset: int,
) -> list[Shape | None]:  # fmt: skip
    """The shapes that onnx infers of the results of the last node, whose operands' types it checks.

    None where it does not know the operator.
    """
    present = {v.name: v for v in operands if v is not None}
    constant = {array.name for array in held}
    graph = helper.make_graph(
        list(nodes),
        "node",
        [info_of(v) for n, v in present.items() if n not in constant],
        [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output if name],
        list(held),
    )
    model = helper.make_model(graph, opset_imports=opsets(nodes, opset))
    try:
        made = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        if "unsupported type" in str(error):
            raise Unstable(f"{nodes[-1].op_type} does not take this type") from None
        raise
    return [_shape(output.type) for output in made.graph.output]


def _shape(kind: onnx.TypeProto) -> Shape | None:
    if not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        d.dim_value if d.HasField("dim_value") else None for d in kind.tensor_type.shape.dim
    )


def pads_lower(node: NodeProto) -> bool:
    """Whether *node* is a maximum over windows with ``SAME_LOWER`` padding."""
    return node.op_type == "MaxPool" and any(a.s == b"SAME_LOWER" for a in node.attribute)


def misread(node: NodeProto) -> bool:
    """Whether onnx's reference (1.23) computes something else than *node*."""
    found = _MISREAD.get(node.op_type)
    return found is not None and found(node)


def _is(node: NodeProto, attribute: str, *values: object) -> bool:
    return any(a.name == attribute and helper.get_attribute_value(a) in values
               for a in node.attribute)  # fmt: skip


def _is_rich(node: NodeProto) -> bool:
    """Whether a recurrent network has more than the plain form."""
    known = all(a.name in _PLAIN or a.s == b"forward" for a in node.attribute)
    return not known or any(node.input[4:])


_MISREAD: Mapping[str, Callable[[NodeProto], bool]] = {
    "GRU": _is_rich, "LSTM": _is_rich, "RNN": _is_rich,
    # It takes other elements than those of the edge.
    "GridSample": lambda node: _is(node, "mode", b"cubic", b"bicubic"),
    # It ends a loop without condition at once, and joins what others collect.
    "Loop": lambda node: not node.input[1] or len(node.output) > len(node.input) - 2,
    # It sums up squares over the batch.
    "LRN": lambda node: True,
    # It finds maxima at other places.
    "MaxPool": lambda node: len(node.output) > 1,
    # It divides by the largest size instead of the largest element.
    "Normalizer": lambda node: _is(node, "norm", b"MAX"),
    # It counts labels below 0 where a mean passes them over.
    "NegativeLogLikelihoodLoss": lambda node: _is(node, "ignore_index", -1),
    "SoftmaxCrossEntropyLoss": lambda node: _is(node, "ignore_index", -1),
    # It gives what is optional another dimension.
    "OptionalGetElement": lambda node: True, "OptionalHasElement": lambda node: True,
    # It scans forwards along the first axis only.
    "Scan": lambda node: any(a.name.endswith(("directions", "axes")) for a in node.attribute),
    # It puts what is inserted elsewhere.
    "SequenceInsert": lambda node: len(node.input) > 2,
    # It mixes up distinct elements in their own order.
    "Unique": lambda node: _is(node, "sorted", 0),
}  # fmt: skip


def all_of(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """*nodes* and those of their bodies."""
    for node in nodes:
        yield node
        for graph in _bodies(node):
            yield from all_of(graph.node)


def noisy(node: NodeProto, off: float, seed: int) -> NodeProto:
    """*node*, in whose bodies floats are *off* by that fraction of them or more, as *seed* says."""
    made = NodeProto()
    made.CopyFrom(node)
    for graph in _bodies(made):
        known = [*graph.input, *graph.output, *graph.value_info]
        kinds = {v.name: v.type.tensor_type.elem_type for v in known}
        inner = [noisy(one, off, seed) for one in graph.node]
        del graph.node[:]
        for one in inner:
            floats = [name for name in one.output if _is_wide(kinds.get(name, 0))]
            for n, name in enumerate(one.output):
                one.output[n] = f"{name}_exact" if name in floats else name
            graph.node.append(one)
            for name in floats:
                graph.node.extend(_blur(name, kinds[name], off, seed))
    return made


def _blur(name: str, kind: int, off: float, seed: int) -> list[NodeProto]:
    """Nodes that make the value *name* of its exact one: how far it is off follows from both."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    rate = 1e4 + crc32(f"{name} {seed}".encode()) % 2**16
    numbers = {f"{name}_rate": rate, f"{name}_most": max(off, off_by([], dtype))}
    steps = [
        ("Mul", f"{name}_0", f"{name}_rate"), ("Sin", f"{name}_1"),
        ("Mul", f"{name}_2", f"{name}_most"), ("Mul", f"{name}_3", f"{name}_0"),
        ("Add", f"{name}_4", f"{name}_0"),
    ]  # fmt: skip
    to = helper.np_dtype_to_tensor_dtype(wide)
    return [
        helper.make_node("Cast", [f"{name}_exact"], [f"{name}_0"], to=to),
        *(
            helper.make_node("Constant", [], [what], value=_tensor(number, wide))
            for what, number in numbers.items()
        ),
        *(helper.make_node(op, given, [f"{name}_{n}"]) for n, (op, *given) in enumerate(steps, 1)),
        helper.make_node("Cast", [f"{name}_5"], [name], to=kind),
    ]


def _tensor(number: float, dtype: np.dtype[Any]) -> TensorProto:
    return numpy_helper.from_array(np.asarray(number, dtype))


def traced(node: NodeProto, operands: Sequence[Value | None] = ()) -> NodeProto:
    """*node* as it is evaluated in float64: casts to other floats remain there, in bodies too.

    Windows of ``SAME_LOWER`` get explicit padding, where onnx's reference (1.23) pads a maximum
    like ``SAME_UPPER``.
    """
    made = NodeProto()
    made.CopyFrom(node)
    if pads_lower(node) and operands and operands[0] is not None:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        given["pads"] = _lower_pads(operands[0].shape[2:], given["kernel_shape"], given["strides"])
        del given["auto_pad"]
        made = helper.make_node(node.op_type, node.input, node.output, **given)
    for attribute in made.attribute:
        typed = attribute.name in ("to", "dtype", "output_dtype") and node.op_type != "BitCast"
        if typed and _is_wide(attribute.i):
            attribute.i = TensorProto.DOUBLE
        if attribute.type == AttributeProto.TENSOR:
            attribute.t.CopyFrom(_widened(attribute.t))
        elif attribute.type == AttributeProto.GRAPH:
            _trace_body(attribute.g)
    return made


def _is_wide(code: int) -> bool:
    """Whether a float of 16 bits or more has the type code *code*."""
    return code != 0 and is_float(np.dtype(helper.tensor_dtype_to_np_dtype(code)))


def _widened(array: TensorProto) -> TensorProto:
    if not _is_wide(array.data_type):
        return array
    return numpy_helper.from_array(numpy_helper.to_array(array).astype(np.float64), array.name)


def _trace_body(graph: GraphProto) -> None:
    for array in graph.initializer:
        array.CopyFrom(_widened(array))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if _is_wide(value.type.tensor_type.elem_type):
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        node.CopyFrom(traced(node))


def _lower_pads(spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Pads before all axes, then after them; an odd one is before."""
    needed = [
        max((-(-extent // stride) - 1) * stride + k - extent, 0)
        for extent, k, stride in zip(spatial, kernel, strides, strict=True)
    ]
    return [*(n - n // 2 for n in needed), *(n // 2 for n in needed)]
