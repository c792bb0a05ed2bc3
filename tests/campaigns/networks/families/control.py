"""Branches and loops, whose bodies are random networks themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, helper, numpy_helper

from tests.campaigns.networks.families.elementwise import ELEMENTWISE
from tests.campaigns.networks.families.movement import MOVEMENT
from tests.campaigns.networks.families.products import gemm, matmul
from tests.campaigns.networks.families.reductions import REDUCTIONS
from tests.campaigns.networks.families.scatters import SCATTERS
from tests.campaigns.networks.families.selection import (
    boxes,
    compressed,
    long_top,
    places,
    unique,
)
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.nodes import info_of, reads
from tests.campaigns.networks.values import Unstable, Value

__all__ = ["CONTROL"]

_INSIDE: dict[Callable[[Growing], None], float] = {
    **ELEMENTWISE, **MOVEMENT, **REDUCTIONS, **SCATTERS, matmul: 2, gemm: 1, places: 0.5,
    compressed: 0.5, unique: 0.3, boxes: 0.3, long_top: 0.3,
}  # fmt: skip


_NESTED = 0.1
"""Share of the nodes of bodies that have bodies themselves."""
_DEEPEST = 2


class _Body(Growing):
    """A network inside another, whose values it reads; what it needs beside them is constant."""

    def __init__(self, net: Growing) -> None:
        net.bodies += 1
        super().__init__(net.rng, net.floats, net.opset, True, f"{net.prefix}b{net.bodies}_")
        self.outer = [v for v in net.values if v.name not in net.opened]
        self.values = self.rng.permutation(np.array(self.outer, object))[:3].tolist()
        self.formal: list[Value] = []
        self.depth: int = net.depth + 1 if isinstance(net, _Body) else 1

    def fed(self, array: Any) -> Value:
        value = self.constant(array, array.dtype)
        self.values.append(value)
        return value

    def takes(self, value: Value) -> Value:
        """An operand of the body, which has the elements of *value* the first time."""
        self.formal.append(Value(f"{self.prefix}in{len(self.formal)}", value.dtype, value.runs))
        self.values.append(self.formal[-1])
        return self.formal[-1]

    def grow(self, steps: int) -> None:
        weights = np.array(list(_INSIDE.values()))
        for _ in range(steps):
            inner = self.depth < _DEEPEST and self.chance(_NESTED)
            family = list(_INSIDE)[int(self.rng.choice(len(_INSIDE), p=weights / weights.sum()))]
            family = self.one_of(list(CONTROL)) if inner else family
            try:
                family(self)
            except Unstable:
                continue

    def like_it(self, x: Value) -> Value:
        """A result of the type of *x*, bounded, that follows from *x* and from what has grown."""
        grown = [v for v in self.made if v.dtype == x.dtype and v.name not in self.opened]
        result = x
        for one in self.rng.permutation(np.array([*grown, None], object))[:4]:
            if one is not None:
                part = one if one.shape == x.shape else self.add("ReduceMean", one, keepdims=0)
                result = self.add("Add", result, part)
        return self.add("Tanh", result)

    def graph(self, results: Sequence[Value]) -> GraphProto:
        return helper.make_graph(
            self.nodes,
            "body",
            [info_of(v) for v in self.formal],
            [info_of(v) for v in results],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
            value_info=[self.info(v) for v in self.made if v not in results],
        )

    def captured(self, graph: GraphProto) -> list[Value]:
        """The values of the network around that *graph* reads."""
        read = {name for node in graph.node for name in reads(node)}
        return [v for v in self.outer if v.name in read]


def branch(net: Growing) -> None:
    """One of two bodies, as a computed flag or an input says."""
    like, bodies, captured = net.pick(), [], []
    for _ in range(2):
        body = _Body(net)
        body.values = [*body.values, like]
        body.grow(net.count(0, 4))
        result = body.like_it(like)
        bodies.append(body.graph([result]))
        captured += body.captured(bodies[-1])
    if net.chance():
        flag = net.fed(np.asarray(net.chance()))
    else:
        x = net.pick()
        total = net.add("ReduceMean", x, keepdims=0)
        flag = net.add("Greater", total, net.like(x, net.normal() / 2))
    operands = list({v.name: v for v in [flag, *captured]}.values())
    node = net.node("If", [flag], then_branch=bodies[0], else_branch=bodies[1])
    net.chain([node], operands, dtype=like.dtype)


def counted_loop(net: Growing) -> None:
    """A loop that carries one or two values, as often as a constant or a run says."""
    carried = [net.pick()]
    if net.chance():
        carried.append(net.pick(lambda v: v.dtype == carried[0].dtype))
    body = _Body(net)
    body.formal = [_scalar(body, "i", np.int64), _scalar(body, "on", np.bool_)]
    formal = [body.takes(x) for x in carried]
    body.grow(net.count(0, 5))
    results = [body.like_it(x) for x in formal]
    on = body.add("Identity", Value(body.formal[1].name, np.dtype(bool), body.formal[1].runs))
    known = net.chance()
    times = net.constant(np.asarray(net.count(1, 4))) if known else net.fed(
        np.asarray(net.count(0, 4)))  # fmt: skip
    scanned = [net.one_of(results)] if known and net.chance() else []
    if scanned:
        scanned = [body.add("Identity", scanned[0])]
    _looped(net, body, times, None, carried, [on, *results, *scanned], open_=not known, scans=len(
        scanned))  # fmt: skip


def conditional_loop(net: Growing) -> None:
    """A loop that goes on while what it computes is small."""
    carried = net.pick()
    body = _Body(net)
    body.formal = [_scalar(body, "i", np.int64), _scalar(body, "on", np.bool_)]
    x = body.takes(carried)
    total = body.takes(net.like(carried, 0.0))
    body.grow(net.count(0, 3))
    made = body.like_it(x)
    size = body.add("ReduceMean", body.add("Abs", made), keepdims=0)
    after = body.add("Add", total, body.add("Add", size, body.like(size, 0.25)))
    on = body.add("Less", after, body.like(after, net.uniform(0.4, 3.0)))
    most = net.constant(np.asarray(7)) if net.chance() else None
    scanned = [body.add("Identity", made)] if most is not None and net.chance() else []
    zero = net.like(carried, 0.0)
    flag = net.constant(np.asarray(True))
    results = [on, made, after, *scanned]
    _looped(net, body, most, flag, [carried, zero], results, open_=True, scans=len(scanned))


def _looped(
    net: Growing, body: _Body, times: Value | None, flag: Value | None, carried: Sequence[Value],
    results: Sequence[Value], *, open_: bool, scans: int,
) -> None:  # fmt: skip
    graph = body.graph(results)
    operands = [times, flag, *carried]
    node = net.node("Loop", operands, outputs=len(results) - 1, body=graph)
    present = [v for v in (*operands, *body.captured(graph)) if v is not None]
    net.chain([node], list({v.name: v for v in present}.values()), opened=open_ and scans > 0)


def _scalar(body: _Body, name: str, kind: Any) -> Value:
    return Value(f"{body.prefix}{name}", np.dtype(kind), (np.asarray(0, kind),) * 4)


def scanned(net: Growing) -> None:
    """A body along an axis of one or two tensors, forwards or backwards, with one or two states."""
    time = net.one_of([1, 2, 3, 5, 11, 37])
    shapes = [[net.count(1, 4) for _ in range(net.count(0, 2))] for _ in range(net.count(1, 2))]
    body = _Body(net)
    states = [net.given(net.normal(*net.shape(0, 2)).astype(net.floats)) for _ in shapes]
    formal = [body.takes(x) for x in states]
    inputs, axes = [], []
    for shape in shapes:
        axis = net.count(0, len(shape))
        axes.append(axis)
        x = net.new_input([*shape[:axis], time, *shape[axis:]])
        inputs.append(x)
        body.takes(Value("", x.dtype, tuple(run.take(0, axis) for run in x.runs)))
    body.grow(net.count(0, 5))
    first = body.add("ReduceMean", body.formal[-1], keepdims=0)
    after = [body.like_it(x) for x in formal]
    after[0] = body.add("Tanh", body.add("Add", after[0], first))
    outs = [body.add("Identity", net.one_of(after)) for _ in range(net.count(1, 2))]
    graph = body.graph([*after, *outs])
    given: dict[str, Any] = {"num_scan_inputs": len(inputs)}
    if net.chance():
        given["scan_input_directions"] = [net.count(0, 1) for _ in inputs]
    if net.chance():
        given["scan_output_directions"] = [net.count(0, 1) for _ in outs]
    if any(axes):
        given["scan_input_axes"] = axes
    if net.chance():
        given["scan_output_axes"] = [net.count(0, out.rank) for out in outs]
    operands = [*states, *inputs]
    node = net.node("Scan", operands, outputs=len(after) + len(outs), body=graph, **given)
    present = {v.name: v for v in (*operands, *body.captured(graph))}
    net.chain([node], list(present.values()))


CONTROL: dict[Callable[[Growing], None], float] = {
    branch: 0.5, counted_loop: 0.5, conditional_loop: 0.4, scanned: 0.5
}  # fmt: skip
