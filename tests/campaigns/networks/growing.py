"""A network that grows node by node; whatever it has become is a valid model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.campaigns.networks.values import RUNS, Unstable, Value, evaluated, is_float

__all__ = ["Growing", "pads_lower"]

Array = NDArray[Any]
Test = Callable[[Value], bool]
Shape = tuple[int | None, ...]
"""Sizes; None where they are not known."""

_MOST_ELEMENTS = 4096
_MOST_OUTPUTS = 5
_ANGLE_ERROR = 2.0**-22
"""Of transforms, whose sines of multiples of pi are zeros in some implementations only."""
_CONV_ERROR = 2.0**-23 * 300


class Growing:
    """A random network, grown by :meth:`add`; *floats* is the type of its floating-point values.

    Operands are constants or inputs where no earlier value fits.  With *strict* no implementation
    may use an algorithm with an error of its own (Winograd).
    """

    def __init__(
        self, rng: np.random.Generator, floats: np.dtype[Any], opset: int, strict: bool
    ) -> None:
        self.rng = rng
        self.floats = floats
        self.opset = opset
        self.strict = strict
        self.values: list[Value] = []
        self.nodes: list[NodeProto] = []
        self.inputs: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self._held: dict[str, Value] = {}

    def count(self, low: int, high: int) -> int:
        """A whole number from *low* to *high*, both included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.count(0, len(options) - 1)]

    def add(
        self,
        op_type: str,
        *operands: Value | None,
        outputs: int = 1,
        dtype: np.dtype[Any] | None = None,
        **attributes: Any,
    ) -> Value:
        """Append a node and return its (first) result; its other results are operands too.

        Raises:
            Unstable: The node's value would be decided by rounding; nothing was appended.
        """
        names = [f"{op_type.lower()}{len(self.nodes)}{'abcdefgh'[n]}" for n in range(outputs)]
        given = ["" if operand is None else operand.name for operand in operands]
        node = helper.make_node(op_type, given, names, **attributes)
        floats = [v.dtype for v in operands if v is not None and is_float(v.dtype)]
        kind = dtype or (floats[0] if floats else self.floats)
        stated = 0.0 if self.strict or op_type != "Conv" else _CONV_ERROR
        stated = _ANGLE_ERROR if op_type in ("DFT", "STFT") else stated
        inferred = self._inferred(node, operands)
        if any(prod(extent or 1 for extent in shape) > _MOST_ELEMENTS for shape in inferred):
            raise Unstable(f"{names[0]} has many elements")
        results = evaluated(_traced(node, operands), operands, kind, self.opset, self.rng, stated)
        if any(not 0 < result.size <= _MOST_ELEMENTS for result in results):
            raise Unstable(f"{names[0]} has many elements, or none")
        if not all(map(_is_of, results, inferred)):
            raise Unstable("onnx's reference gives another shape than onnx infers")
        self.nodes.append(node)
        self.values += results
        return results[0]

    def several(
        self, op_type: str, *operands: Value, outputs: int, **attributes: Any
    ) -> list[Value]:
        """As :meth:`add`; returns all results."""
        self.add(op_type, *operands, outputs=outputs, **attributes)
        return self.values[-outputs:]

    def pick(self, fits: Test = lambda value: True) -> Value:
        """A float value that *fits*, often one of the latest; an input if there is none."""
        found = [v for v in self.values if is_float(v.dtype) and fits(v)]
        if not found:
            raise Unstable("no value fits")
        recent = found[-4:] if self.chance(0.7) else found
        value: Value = self.one_of(recent)
        return value

    def pick_integer(self) -> Value:
        """A value of an integer type; a new input if there is none."""
        found = [v for v in self.values if v.dtype.kind in "iu"]
        if found and self.chance(0.8):
            value: Value = self.one_of(found)
            return value
        return self.new_input(self.shape(), self.one_of([np.int64, np.int32, np.int8, np.uint8]))

    def pick_flags(self) -> Value:
        """A value of booleans; a new one if there is none."""
        found = [v for v in self.values if v.dtype.kind == "b"]
        if found and self.chance(0.8):
            value: Value = self.one_of(found)
            return value
        x = self.pick()
        return self.add(self.one_of(["Greater", "Less"]), x, self.like(x, self.normal()))

    def pick_rank(self, low: int, high: int) -> Value:
        """A float value of *low* to *high* dimensions; a new input if there is none."""
        found = [v for v in self.values if is_float(v.dtype) and low <= v.rank <= high]
        if found and self.chance(0.9):
            value: Value = self.one_of(found[-4:] if self.chance(0.7) else found)
            return value
        return self.new_input([self.count(1, 7) for _ in range(self.count(low, high))])

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """Sizes of a random tensor: small, of all kinds."""
        rank = self.count(low, high)
        sizes = [self.one_of([1, 2, 3, 4, 5, 7, 8, 11, 16]) for _ in range(rank)]
        while np.prod(sizes, dtype=int) > _MOST_ELEMENTS // 4:
            sizes[int(np.argmax(sizes))] = self.count(1, 3)
        return sizes

    def new_input(self, shape: Sequence[int], dtype: Any = None) -> Value:
        """An input of *shape*, standard normal or small integers."""
        kind = self.floats if dtype is None else np.dtype(dtype)
        value = self._given(f"x{len(self.inputs)}", self._drawn(shape, kind))
        self.inputs[value.name] = value
        self.values.append(value)
        return value

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A constant; floats are rounded to the network's type unless *dtype* is given."""
        held = np.asarray(array)
        kind = dtype or (self.floats if held.dtype.kind == "f" else held.dtype)
        value = self._given(f"c{len(self.constants)}", held.astype(kind))
        self.constants[value.name] = held.astype(kind)
        return value

    def like(self, x: Value, array: Any) -> Value:
        """A constant of the type of *x*."""
        return self.constant(array, x.dtype)

    def ints(self, *numbers: int) -> Value:
        """A constant vector of shapes, axes or places."""
        return self.constant(np.array(numbers, np.int64))

    def normal(self, *shape: int) -> Array:
        return np.asarray(self.rng.standard_normal(shape))

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        return np.asarray(self.rng.uniform(low, high, shape))

    def feeds(self) -> dict[str, Array]:
        """The inputs' arrays."""
        return {name: value.exact.astype(value.dtype) for name, value in self.inputs.items()}

    def results(self) -> list[Value]:
        """The values that no node reads, and one that nodes read."""
        read = {name for node in self.nodes for name in node.input}
        made = [v for v in self.values if v.name not in self.inputs]
        ends = [v for v in made if v.name not in read]
        inner = [v for v in made if v.name in read]
        chosen = ends[-_MOST_OUTPUTS:]
        return [*chosen, self.one_of(inner)] if inner and self.chance(0.4) else chosen

    def model(self, results: Sequence[Value]) -> ModelProto:
        """The model that computes *results*, without the nodes that they do not need."""
        needed = {value.name for value in results}
        nodes: list[NodeProto] = []
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.output):
                nodes.insert(0, node)
                needed.update(node.input)
        graph = helper.make_graph(
            nodes,
            "random",
            [_info(v) for v in self.inputs.values()],
            [_info(v) for v in results],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in needed],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        onnx.checker.check_model(model, full_check=True)
        return model

    def _inferred(self, node: NodeProto, operands: Sequence[Value | None]) -> list[Shape]:
        """The shapes that onnx infers of *node*, whose operands' types it checks too."""
        present = {v.name: v for v in operands if v is not None}
        held = [
            numpy_helper.from_array(self.constants[n], n) for n in present if n in self.constants
        ]
        graph = helper.make_graph(
            [node],
            "node",
            [_info(v) for n, v in present.items() if n not in self.constants],
            [helper.make_empty_tensor_value_info(name) for name in node.output],
            held,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            made = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        except onnx.shape_inference.InferenceError as error:
            if "unsupported type" in str(error):
                raise Unstable(f"{node.op_type} does not take this type") from None
            raise
        shapes = {o.name: o.type.tensor_type.shape.dim for o in made.graph.output}
        return [
            tuple(d.dim_value if d.HasField("dim_value") else None for d in shapes[name])
            for name in node.output
        ]

    def _drawn(self, shape: Sequence[int], kind: np.dtype[Any]) -> Array:
        if kind.kind == "b":
            return np.asarray(self.rng.random(shape) < 0.5)
        if not is_float(kind):
            low = 0 if kind.kind == "u" else -5
            return self.rng.integers(low, 6, shape).astype(kind)
        return np.asarray(self.rng.standard_normal(shape)).astype(kind)

    def _given(self, name: str, array: Array) -> Value:
        exact = array.astype(np.float64) if is_float(array.dtype) else array
        return Value(name, array.dtype, (exact,) * (1 + RUNS))


def pads_lower(node: NodeProto) -> bool:
    """Whether *node* is a maximum over windows with ``SAME_LOWER`` padding."""
    return node.op_type == "MaxPool" and any(a.s == b"SAME_LOWER" for a in node.attribute)


def _lower_pads(spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Pads before all axes, then after them; an odd one is before."""
    needed = [
        max((-(-extent // stride) - 1) * stride + k - extent, 0)
        for extent, k, stride in zip(spatial, kernel, strides, strict=True)
    ]
    return [*(n - n // 2 for n in needed), *(n // 2 for n in needed)]


def _is_of(value: Value, shape: Shape) -> bool:
    return value.rank == len(shape) and all(
        known in (None, extent) for extent, known in zip(value.shape, shape, strict=True)
    )


def _info(value: Value) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, kind, value.shape)


def _traced(node: NodeProto, operands: Sequence[Value | None]) -> NodeProto:
    """*node* as it is evaluated in float64: casts to other floats remain there.

    Windows of ``SAME_LOWER`` get explicit padding, where onnx's reference (1.23) pads a maximum
    like ``SAME_UPPER``.
    """
    traced = NodeProto()
    traced.CopyFrom(node)
    if pads_lower(node) and operands[0] is not None:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        given["pads"] = _lower_pads(operands[0].shape[2:], given["kernel_shape"], given["strides"])
        del given["auto_pad"]
        traced = helper.make_node(node.op_type, node.input, node.output, **given)
    for attribute in traced.attribute:
        named = attribute.name in ("to", "dtype", "output_dtype")
        if named and is_float(np.dtype(helper.tensor_dtype_to_np_dtype(attribute.i))):
            attribute.i = onnx.TensorProto.DOUBLE
    return traced
