"""A network that grows node by node; whatever it has become is a valid model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tests.campaigns.networks.evaluators import evaluator
from tests.campaigns.networks.nodes import Shape, all_of, inferred, info_of, opsets, reads
from tests.campaigns.networks.values import RUNS, Unstable, Value, evaluated, is_float, off_by

__all__ = ["Growing"]

Array = NDArray[Any]
Test = Callable[[Value], bool]

_MOST_ELEMENTS = 4096
_MOST_OUTPUTS = 5
_STATED = {"DFT": 2.0**-20, "STFT": 2.0**-20, "Resize": 2.0**-20}
"""Of transforms, whose sines of multiples of pi are zeros in some implementations only; of images
whose places are computed in float32."""
_CONV_ERROR = 2.0**-23 * 300


class Growing:
    """A random network, grown by :meth:`add`; *floats* is the type of its floating-point values.

    Operands are constants or inputs where no earlier value fits.  With *strict* no implementation
    may use an algorithm with an error of its own (Winograd).  All names begin with *prefix*.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        floats: np.dtype[Any],
        opset: int,
        strict: bool,
        prefix: str = "",
    ) -> None:
        self.rng = rng
        self.floats = floats
        self.opset = opset
        self.strict = strict
        self.values: list[Value] = []
        self.nodes: list[NodeProto] = []
        self.inputs: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.made: list[Value] = []
        """The results of all nodes."""
        self.opened: set[str] = set()
        """Results whose sizes depend on data: no constant fits them, so no family picks them."""
        self.prefix = prefix
        self._named = 0
        self.bodies = 0

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
        opened: bool | None = None,
        **attributes: Any,
    ) -> Value:
        """Append a node and return its (first) result; its other results are operands too.

        *op_type* has the domain before it if it is not onnx's own.  *opened* says whether the
        sizes of the results depend on data, by default as those of the operands do.

        Raises:
            Unstable: The node's value would be decided by rounding; nothing was appended.
        """
        node = self.node(op_type, operands, outputs, **attributes)
        return self.chain([node], operands, dtype=dtype, opened=opened)[0]

    def node(
        self,
        op_type: str,
        operands: Sequence[Value | str | None],
        outputs: int = 1,
        **attributes: Any,
    ) -> NodeProto:
        """A node, which :meth:`chain` appends, with new names for its results."""
        domain, _, name = op_type.rpartition(".")
        self._named += 1
        names = [f"{self.prefix}{name.lower()}{self._named}{'abcdefgh'[n]}" for n in range(outputs)]
        given = [one if isinstance(one, str) else one.name if one else "" for one in operands]
        return helper.make_node(name, given, names, domain=domain or None, **attributes)

    def chain(
        self,
        nodes: Sequence[NodeProto],
        operands: Sequence[Value | None],
        *,
        dtype: np.dtype[Any] | None = None,
        opened: bool | None = None,
    ) -> list[Value]:
        """Append *nodes*, of which only the results of the last one are values; returns these.

        *operands* are all values that the nodes and their bodies read.
        """
        last = nodes[-1]
        floats = [v.dtype for v in operands if v is not None and is_float(v.dtype)]
        kind = dtype or (floats[0] if floats else self.floats)
        if opened is None:
            opened = any(v is not None and v.name in self.opened for v in operands)
        held = [
            numpy_helper.from_array(self.constants[v.name], v.name)
            for v in operands if v is not None and v.name in self.constants
        ]  # fmt: skip
        shapes = inferred(nodes, operands, held, self.opset)
        if any(prod(e or 1 for e in shape) > _MOST_ELEMENTS for shape in shapes if shape):
            raise Unstable(f"{last.op_type} gives many elements")
        off = off_by(all_of(nodes), kind)
        run = evaluator(nodes, operands, self.opset, off)
        stated = self._stated(last)
        results = evaluated(nodes, operands, kind, run, self.rng, stated)
        if any(not (opened or result.size) or result.size > _MOST_ELEMENTS for result in results):
            raise Unstable(f"{last.op_type} gives many elements, or none")
        if not all(map(_is_of, results, shapes)):
            found = [result.shape for result in results]
            raise Unstable(f"{last.op_type} gives {found}, but onnx infers {shapes}")
        self.nodes += nodes
        self.made += results
        if opened:
            self.opened.update(result.name for result in results)
        else:
            self.values += results
        return results

    def _stated(self, node: NodeProto) -> float:
        if node.op_type == "Conv":
            return 0.0 if self.strict else _CONV_ERROR
        return _STATED.get(node.op_type, 0.0)

    def several(
        self, op_type: str, *operands: Value | None, outputs: int, **attributes: Any
    ) -> list[Value]:
        """As :meth:`add`; returns all results."""
        self.add(op_type, *operands, outputs=outputs, **attributes)
        return self.made[-outputs:]

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
        return self.fed(self._drawn(shape, kind))

    def fed(self, array: Array) -> Value:
        """An input whose value is *array*."""
        value = self._given(f"{self.prefix}x{len(self.inputs)}", array)
        self.inputs[value.name] = value
        self.values.append(value)
        return value

    def given(self, array: Any, dtype: Any = None) -> Value:
        """A constant, or an input that only a run knows."""
        held = np.asarray(array, dtype)
        return self.fed(held) if self.chance() else self.constant(held, held.dtype)

    def single(self, low: int = 0, high: int = 4) -> Value:
        """A float32 value of *low* to *high* dimensions."""
        x = self.pick_rank(low, high)
        kind = np.dtype(np.float32)
        return x if x.dtype == kind else self.add("Cast", x, to=TensorProto.FLOAT, dtype=kind)

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A constant; floats are rounded to the network's type unless *dtype* is given."""
        held = np.asarray(array)
        kind = dtype or (self.floats if held.dtype.kind == "f" else held.dtype)
        value = self._given(f"{self.prefix}c{len(self.constants)}", held.astype(kind))
        self.constants[value.name] = held.astype(kind)
        return value

    def sure(self, array: Any) -> Value:
        """A float32 constant that decides a size or a choice."""
        return replace(self.constant(array, np.dtype(np.float32)), sure=True)

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
        read = {name for node in self.nodes for name in reads(node)}
        made = self.made
        ends = [v for v in made if v.name not in read]
        inner = [v for v in made if v.name in read]
        chosen = ends[-_MOST_OUTPUTS:]
        return [*chosen, self.one_of(inner)] if inner and self.chance(0.4) else chosen

    def info(self, value: Value) -> ValueInfoProto:
        """The type of *value*, without sizes that depend on data."""
        return info_of(value, [None] * value.rank if value.name in self.opened else None)

    def model(self, results: Sequence[Value]) -> ModelProto:
        """The model that computes *results*, without the nodes that they do not need."""
        needed = {value.name for value in results}
        nodes: list[NodeProto] = []
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.output):
                nodes.insert(0, node)
                needed.update(reads(node))
        graph = helper.make_graph(
            nodes,
            "random",
            [info_of(v) for v in self.inputs.values()],
            [self.info(v) for v in results],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in needed],
        )
        model = helper.make_model(graph, opset_imports=opsets(nodes, self.opset))
        model.ir_version = 10 if self.opset < 24 else 13
        onnx.checker.check_model(model, full_check=True)
        return model

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


def _is_of(value: Value, shape: Shape | None) -> bool:
    return shape is None or (
        value.rank == len(shape)
        and all(known in (None, extent) for extent, known in zip(value.shape, shape, strict=True))
    )
