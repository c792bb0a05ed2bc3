"""Damaged models: messages changed by their descriptors, then files changed byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.campaigns.inputs.changes import INTEGERS, REALS, TEXTS, changed_bytes, one_of
from tests.campaigns.networks.campaign import grown
from tests.frontend.models import graph_model, node

__all__ = ["damaged_model"]

Rng = np.random.Generator
M = TypeVar("M", bound=Message)

_NETWORKS = 300
_IN_BYTES = 0.15
_VERBS = (("show",),) * 6 + (("show", "--json"), ("explain",), ("explain",))
_COMPILED = 0.004
"""Share of the verbs that build programs, which takes seconds where the model is still sound."""


def damaged_model(rng: Rng, folder: Path) -> list[str]:
    """Write a damaged model into *folder*; returns the command that reads it."""
    model = _base(rng)
    has_open = any(d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim)
    given = ["--dim", "n=3"] if has_open else []
    for _ in range(int(rng.geometric(0.6))):
        if rng.random() < 0.15:
            one_of(rng, _FORGERIES)(model, rng)
        else:
            _change(model, rng)
    data = model.SerializeToString()
    path = folder / "net.onnx"
    path.write_bytes(changed_bytes(data, rng) if rng.random() < _IN_BYTES else data)
    built = rng.random() < _COMPILED
    verb, *options = one_of(rng, (("run",), ("verify", "--static")) if built else _VERBS)
    return [verb, str(path), *options, *given]


def _base(rng: Rng) -> ModelProto:
    """A sound model: a random network, or one with what those do not have."""
    if rng.random() < 0.7:
        return _fresh(_grown(int(rng.integers(_NETWORKS))))
    return one_of(rng, (_branched, _functional, _open_sizes, _sparse))(rng)


@cache
def _grown(number: int) -> ModelProto:
    """Random network *number*."""
    net = grown(np.random.default_rng([13, number]))
    return net.model(net.results())


def _branched(rng: Rng) -> ModelProto:
    """``If`` on a constant, in two levels."""
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    inner = helper.make_graph([node("Neg", ["x"], ["y"])], "inner", [], [info])
    choose = node("If", ["yes"], ["y"], then_branch=inner, else_branch=inner)
    outer = helper.make_graph([choose], "outer", [], [info])
    whole = node("If", ["yes"], ["y"], then_branch=outer, else_branch=inner)
    return graph_model([whole], {"x": (2, 3)}, ["y"], {"yes": np.asarray(True)})


def _functional(rng: Rng) -> ModelProto:
    """A call of a function that the model defines."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    body = [node("Mul", ["a", "a"], ["b"]), node("Add", ["b", "a"], ["c"])]
    function = helper.make_function("own", "square", ["a"], ["c"], body, opsets[:1])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in "xy"]
    call = node("square", ["x"], ["y"], domain="own")
    graph = helper.make_graph([call], "calls", ends[:1], ends[1:])
    return helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)


def _open_sizes(rng: Rng) -> ModelProto:
    """A size that ``--dim n=3`` gives, and arithmetic on shapes."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "first"], ["n"]),
        node("Concat", ["n", "rest"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
        node("ConstantOfShape", ["n"], ["z"]),
    ]
    held = {"first": np.array([0]), "rest": np.array([-1])}
    return graph_model(nodes, {"x": ("n", 4, 2)}, ["y", "z"], held)


def _sparse(rng: Rng) -> ModelProto:
    """A sparse initializer."""
    model = graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 4)}, ["y"], {})
    values = numpy_helper.from_array(np.ones(2, np.float32), "w")
    places = numpy_helper.from_array(np.array([1, 7]), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4, 2]))
    return model


def _change(model: ModelProto, rng: Rng) -> None:
    """Change one field of one message within *model*."""
    messages = list(_messages(model))
    message = one_of(rng, messages)
    fields = list(message.DESCRIPTOR.fields)
    present = [field for field, _ in message.ListFields()]
    field = one_of(rng, present if present and rng.random() < 0.8 else fields)
    if field.is_repeated:
        _change_list(message, field, messages, rng)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        others = [m for m in messages if m.DESCRIPTOR is field.message_type]
        if others and rng.random() < 0.7:
            _copy(one_of(rng, others), getattr(message, field.name))
        else:
            message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), messages, rng))


def _change_list(
    message: Message, field: FieldDescriptor, messages: list[Message], rng: Rng
) -> None:
    """Leave out, repeat, exchange, replace or add elements of a list."""
    items = getattr(message, field.name)
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    way, at = int(rng.integers(5)), int(rng.integers(max(1, len(items))))
    if way == 0 and len(items):
        del items[at]
    elif way == 1 and len(items):
        kept = list(items)
        kept.insert(int(rng.integers(len(kept) + 1)), kept[at])
        _replace(message, field, kept)
    elif way == 2 and len(items) > 1:
        _replace(message, field, [items[int(n)] for n in rng.permutation(len(items))])
    elif is_message:
        others = [m for m in messages if m.DESCRIPTOR is field.message_type]
        if others:
            items.append(_fresh(one_of(rng, others)))
    elif len(items) and way < 4:
        items[at] = _scalar(field, items[at], messages, rng)
    else:
        items.append(_scalar(field, field.default_value or 0, messages, rng))


def _replace(message: Message, field: FieldDescriptor, items: list[Any]) -> None:
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    kept = [_fresh(item) if is_message else item for item in items]
    message.ClearField(field.name)
    getattr(message, field.name).extend(kept)


def _scalar(field: FieldDescriptor, old: Any, messages: list[Message], rng: Rng) -> Any:
    """Another value for a number, text or byte string."""
    kind = field.cpp_type
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return one_of(rng, REALS)
    if kind == FieldDescriptor.CPPTYPE_STRING and field.type == FieldDescriptor.TYPE_BYTES:
        raw = old if isinstance(old, bytes) else b""
        return changed_bytes(raw, rng) if raw else one_of(rng, (b"", b"\xff\xfe", b"abcd" * 9))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return one_of(rng, (*TEXTS, *_names(messages)))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not old
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return one_of(rng, [value.number for value in field.enum_type.values])
    near = (old + 1, old - 1, -old, 2 * old) if isinstance(old, int) else ()
    wanted = one_of(rng, (*INTEGERS, *near))
    bits = 32 if kind in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 64
    low = 0 if kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64) else (
        -(1 << (bits - 1))
    )  # fmt: skip
    return (
        int(np.clip(float(wanted), low, 0)) if wanted < low else min(wanted, low + (1 << bits) - 1)
    )


def _names(messages: list[Message]) -> list[str]:
    """The texts of the model: names of values, of operators and of attributes."""
    return [
        value
        for message in messages[:60]
        for field, held in message.ListFields()
        if field.type == FieldDescriptor.TYPE_STRING
        for value in (held if field.is_repeated else [held])
    ] or [""]


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for part in value if field.is_repeated else [value]:
                yield from _messages(part)


def _fresh(message: M) -> M:
    copy: M = type(message)()
    copy.CopyFrom(message)
    return copy


def _copy(source: Message, target: Message) -> None:
    """Overwrite *target*, of which *source* may be a part."""
    target.CopyFrom(_fresh(source))


def _cycle(model: ModelProto, rng: Rng) -> None:
    """A node reads a later node's result."""
    nodes = model.graph.node
    if len(nodes) > 1 and nodes[0].input and nodes[-1].output:
        nodes[0].input[0] = nodes[-1].output[0]


def _elsewhere(model: ModelProto, rng: Rng) -> None:
    """Weights in another file: one of the system, one above, or none."""
    for held in model.graph.initializer[:2]:
        held.ClearField("raw_data")
        held.data_location = TensorProto.EXTERNAL
        places = ("../../../../etc/passwd", "/dev/zero", "net.onnx", "gone", "", ".", "a\0b")
        for key, value in (
            ("location", one_of(rng, places)),
            ("offset", str(one_of(rng, INTEGERS))),
            ("length", str(one_of(rng, INTEGERS))),
        ):
            entry = held.external_data.add()
            entry.key, entry.value = key, value


def _deep(model: ModelProto, rng: Rng) -> None:
    """Branches within branches."""
    info = helper.make_tensor_value_info("deep", TensorProto.FLOAT, None)
    body = helper.make_graph([node("Constant", [], ["deep"], value_float=1.0)], "b", [], [info])
    for _ in range(int(rng.integers(2, 60))):
        choose = node("If", ["deep_yes"], ["deep"], then_branch=body, else_branch=body)
        if choose.ByteSize() > 1 << 20:
            break
        body = helper.make_graph([choose], "b", [], [info])
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(True), "deep_yes"))
    model.graph.node.extend(body.node)
    model.graph.output.append(info)


def _huge(model: ModelProto, rng: Rng) -> None:
    """A constant computed from a shape of any size, or an input of one."""
    sizes = [abs(one_of(rng, INTEGERS)) % (1 << 62) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.5:
        model.graph.node.append(node("ConstantOfShape", ["huge_sizes"], ["huge"]))
        model.graph.initializer.append(numpy_helper.from_array(np.array(sizes), "huge_sizes"))
    else:
        model.graph.input.append(helper.make_tensor_value_info("wide", TensorProto.FLOAT, sizes))
        model.graph.node.append(node("Neg", ["wide"], ["huge"]))
    model.graph.output.append(helper.make_tensor_value_info("huge", TensorProto.FLOAT, None))


def _texts(model: ModelProto, rng: Rng) -> None:
    """A tensor of texts in place of numbers."""
    for held in model.graph.initializer[:1]:
        texts = TensorProto(name=held.name, data_type=TensorProto.STRING, dims=[2])
        texts.string_data.extend([b"1", b"\xff"])
        held.CopyFrom(texts)


_FORGERIES: tuple[Callable[[ModelProto, Rng], None], ...] = (
    _cycle,
    _elsewhere,
    _deep,
    _huge,
    _texts,
)
