"""Random bodies of loops compute the same once what can has moved out of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.budget import examples
from tests.frontend.models import graph_model, node
from tests.graph.executor import random_feeds, run_network

Rng = np.random.Generator
Shape = tuple[int, ...]
STATE, ROW, SHORT = (2, 3), (2, 3), (3,)


class Body:
    """Random nodes on a state ``h``, rows ``x`` and ``z``, and what is read from outside."""

    def __init__(self, rng: Rng):
        self.rng = rng
        self.nodes: list[NodeProto] = []
        self.values: list[tuple[str, Shape]] = [
            ("h", STATE), ("x", ROW), ("z", SHORT), ("s", STATE), ("w", (3, 3)), ("b", SHORT),
            ("q", (2, 1)),
        ]  # fmt: skip
        for _ in range(rng.integers(3, 14)):
            self._grow()

    def _add(self, op: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(op, inputs, [name], **attributes))
        self.values.append((name, shape))

    def some(self, share: float = 0.5) -> tuple[str, Shape]:
        """Any value, or with this probability one of the last four."""
        rng, count = self.rng, len(self.values)
        late = rng.random() < share
        return self.values[-1 - rng.integers(4) if late else rng.integers(count)]

    def _grow(self) -> None:
        (value, shape), (other, second) = self.some(), self.some(0.0)
        is_matrix = len(shape) == 2
        match self.rng.integers(8):
            case 0 | 1 | 2:
                self._combine(value, shape, other, second)
            case 3:
                self._add(str(self.rng.choice(["Tanh", "Neg", "Sigmoid", "Sin"])), [value], shape)
            case 4 if len(second) == 2 and second[0] == shape[-1] > 1:
                self._add("MatMul", [value, other], (*shape[:-1], second[1]))
            case 5 if is_matrix:
                self._add("ReduceSum", [value, "axes"], (shape[0], 1), keepdims=1)
            case 6 if is_matrix:
                self._add("Softmax", [value], shape, axis=int(self.rng.integers(2)))
            case 7 if is_matrix:
                self._add("Transpose", [value], shape[::-1], perm=[1, 0])

    def _combine(self, value: str, shape: Shape, other: str, second: Shape) -> None:
        try:
            made = np.broadcast_shapes(shape, second)
        except ValueError:
            return
        self._add(str(self.rng.choice(["Add", "Mul", "Sub", "Max"])), [value, other], made)

    def finish(self) -> list[tuple[str, Shape]]:
        """Add the next state ``g`` and some rows; return these."""
        states = [name for name, shape in self.values if shape == STATE]
        self.nodes.append(node("Tanh", [states[-1]], ["g"]))
        rows = []
        for number in range(self.rng.integers(1, 4)):
            value, shape = self.some()
            self.nodes.append(node("Identity", [value], [f"y{number}"]))
            rows.append((f"y{number}", shape))
        return rows


def model_of(rng: Rng, kind: str) -> ModelProto:
    body = Body(rng)
    rows = body.finish()
    names = [f"r{number}" for number in range(len(rows))]

    def info(name: str, shape: Shape, code: int = TensorProto.FLOAT) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, code, shape)

    given, made = [info("h", STATE)], [info("g", STATE), *(info(*row) for row in rows)]
    inputs: dict[str, Shape] = {"h0": STATE, "s": STATE}
    if kind == "Scan":
        graph = helper.make_graph(
            body.nodes, "body", [*given, info("x", ROW), info("z", SHORT)], made
        )  # fmt: skip
        backwards = [rng.integers(0, 2, n).tolist() for n in (2, len(rows))]
        ways = [0] * len(rows) if rng.random() < 0.5 else backwards[1]
        one = node(
            "Scan", ["h0", "xs", "zs"], ["last", *names], body=graph, num_scan_inputs=2,
            scan_input_directions=backwards[0], scan_output_directions=ways,
        )  # fmt: skip
        inputs |= {"xs": (5, *ROW), "zs": (5, *SHORT)}
    else:
        ends = [
            node("ReduceMax", ["g"], ["top"], keepdims=0),
            node("Less", ["top", "most"], ["go"]),
        ]
        picks = [node("Gather", ["xs", "i"], ["x"])]
        if rng.random() < 0.5:
            ends = [node("Identity", ["c"], ["go"])]
        if rng.random() < 0.5:
            picks, inputs = [], {**inputs, "x": ROW}
        before = [info("i", (), TensorProto.INT64), info("c", (), TensorProto.BOOL)]
        graph = helper.make_graph(
            [*picks, *body.nodes, *ends], "body", [*before, *given],
            [info("go", (), TensorProto.BOOL), *made],
        )  # fmt: skip
        one = node("Loop", ["five", "", "h0"], ["last", *names], body=graph)
        inputs |= {"xs": (5, *ROW), "z": SHORT}
    behind = [node("Neg", [name], [f"o{name}"]) for name in names]
    constants = {
        "w": rng.standard_normal((3, 3)), "b": rng.standard_normal(3),
        "q": rng.standard_normal((2, 1)), "most": np.asarray(rng.random()),
    }  # fmt: skip
    held = {name: array.astype(np.float32) for name, array in constants.items()}
    whole = {"axes": np.asarray([1]), "five": np.asarray(5)}
    outputs = ["last", *(f"o{name}" for name in names)]
    return graph_model([one, *behind], inputs, outputs, {**held, **whole})


@pytest.mark.parametrize("kind", ["Scan", "Loop"])
@examples(100)
@given(seed=integers(0, 2**32 - 1))
def test_random_bodies(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = load(model_of(rng, kind))
    plain = partition(graph)
    feeds = random_feeds(plain, rng)
    wanted = run_network(plain, feeds)
    for got, want in zip(run_network(partition(optimize(graph)), feeds), wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
