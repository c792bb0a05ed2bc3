"""Sequences and optionals: no values themselves, but tensors go in and come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["SEQUENCES"]


def parts(net: Growing) -> None:
    """A tensor cut into parts of one size or of given sizes, or into slices without the axis."""
    x = net.pick_rank(1, 4)
    axis = net.count(-x.rank, x.rank - 1)
    extent, way = x.shape[axis], net.count(0, 2)
    given: dict[str, Any] = {"axis": axis}
    operands = [x]
    if way == 0:
        operands.append(net.constant(np.asarray(net.count(1, extent))))
    elif way == 1:
        first = net.count(0, extent - 1)
        operands.append(net.ints(*([first] if first else []), extent - first))
    else:
        given["keepdims"] = net.count(0, 1)
    node = net.node("SplitToSequence", operands, **given)
    sizes = _sizes(operands, extent)
    last = len(sizes) - 1
    rank = x.rank - 1 if given.get("keepdims") == 0 else x.rank
    joined = net.count(-rank, rank - 1) if rank else None
    alike = way != 0 or extent % sizes[0] == 0
    _told(net, [node], operands, last, alike=alike and way != 1, axis=joined)


def _sizes(operands: list[Value], extent: int) -> list[int]:
    if len(operands) == 1:
        return [1] * extent
    size = operands[1].exact
    if size.ndim:
        return [int(n) for n in size]
    return [min(int(size), extent - begin) for begin in range(0, extent, int(size))]


def built(net: Growing) -> None:
    """Tensors put in, at the end or elsewhere, and taken out again."""
    x = net.pick()
    many = net.count(1, 4)
    items = [x, *(net.given(net.normal(*x.shape).astype(x.dtype)) for _ in range(many - 1))]
    nodes, extra = [], []
    if net.chance():
        nodes.append(net.node("SequenceConstruct", items))
    else:
        code = helper.np_dtype_to_tensor_dtype(x.dtype)
        nodes.append(net.node("SequenceEmpty", [], dtype=code))
        for n, item in enumerate(items):
            at = [net.constant(np.asarray(net.count(-n, n)))] if net.chance() else []
            extra += at
            nodes.append(net.node("SequenceInsert", [nodes[-1].output[0], item, *at]))
    if many > 1 and net.chance():
        at = [net.constant(np.asarray(net.count(-many, many - 1)))] if net.chance() else []
        extra += at
        nodes.append(net.node("SequenceErase", [nodes[-1].output[0], *at]))
        many -= 1
    axis = net.count(-x.rank, x.rank - 1) if x.rank else None
    _told(net, nodes, [*items, *extra], many - 1, alike=True, axis=axis)


def mapped(net: Growing) -> None:
    """A body on each tensor of a sequence."""
    x = net.pick()
    items = [x, *(net.given(net.normal(*x.shape).astype(x.dtype)) for _ in range(net.count(0, 2)))]
    made = net.node("SequenceConstruct", items)
    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    name, factor = f"{made.output[0]}_item", net.given(net.normal().astype(x.dtype))
    body = helper.make_graph(
        [
            helper.make_node("Mul", [name, f"{name}_by"], [f"{name}_half"]),
            helper.make_node(net.one_of(["Tanh", "Neg", "Abs"]), [f"{name}_half"], [f"{name}_out"]),
        ],
        "item",
        [
            helper.make_tensor_value_info(name, code, x.shape),
            helper.make_tensor_value_info(f"{name}_by", code, ()),
        ],
        [helper.make_tensor_value_info(f"{name}_out", code, x.shape)],
    )
    node = net.node("SequenceMap", [made.output[0], factor], body=body)
    _told(net, [made, node], [*items, factor], len(items) - 1, alike=True, axis=None)


def optional(net: Growing) -> None:
    x = net.pick()
    made = net.node("Optional", [x])
    asked = net.one_of(["OptionalHasElement", "OptionalGetElement"])
    net.chain([made, net.node(asked, [made.output[0]])], [x])


def _told(
    net: Growing, nodes: list[NodeProto], operands: list[Value], last: int, *, alike: bool,
    axis: int | None,
) -> None:  # fmt: skip
    """What is asked of the sequence: its length, one tensor, or all of them joined."""
    found = nodes[-1].output[0]
    way = net.count(0, 2)
    if way == 0:
        net.chain([*nodes, net.node("SequenceLength", [found])], operands)
    elif way == 1 or axis is None or not alike:
        at = net.constant(np.asarray(net.count(-last - 1, last)))
        net.chain([*nodes, net.node("SequenceAt", [found, at])], [*operands, at])
    else:
        how = {"axis": axis, "new_axis": net.count(0, 1)}
        net.chain([*nodes, net.node("ConcatFromSequence", [found], **how)], operands)


SEQUENCES: dict[Callable[[Growing], None], float] = {
    parts: 0.4, built: 0.4, mapped: 0.3, optional: 0.2
}  # fmt: skip
