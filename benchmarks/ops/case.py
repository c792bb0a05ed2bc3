"""Definition of a benchmark case: one operator at one size, for us and for the peers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import onnx
from onnx import helper, numpy_helper

from ansorpy.arrays import Array
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import Tensor
from ansorpy.measure.run.inputs import input_array
from benchmarks.ops.layout import Layout

__all__ = ["Case", "OnnxGraph"]

OPSET, IR_VERSION = 20, 10


@dataclass(frozen=True)
class OnnxGraph:
    """Nodes from the placeholders' names to ``out``; only ONNX needs ``constants``."""

    nodes: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, Array] | None = None


@dataclass(frozen=True)
class Case(ABC):
    """One operator at one size.

    Args:
        family: The heading under which it is reported; a suffix after a dot only tells cases apart.
    """

    family: str

    @property
    @abstractmethod
    def label(self) -> str:
        """Its size in a few characters, unique within the family."""

    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """The definition: placeholders in calling order, then the single output."""

    @abstractmethod
    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        """The same in ONNX with the peers' layouts; each peer is timed on its fastest graph."""

    @abstractmethod
    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        """The same in torch: functions without arguments that return the output.

        Args:
            values: A contiguous tensor in the peers' layout for each placeholder.
        """

    def layouts(self) -> Mapping[str, Layout]:
        """The peers' layouts of placeholders and of ``out`` that differ from ours."""
        return {}

    @property
    def name(self) -> str:
        """Family and size, as matched by ``--only``."""
        return f"{self.family}.{self.label}"

    @property
    def group(self) -> str:
        """Heading of its geometric mean: the family, with a separate one for batches."""
        family = self.family.split(".")[0]
        return f"{family} b16" if self.label.endswith(".b16") else family

    @cached_property
    def dag(self) -> ComputeDAG:
        """The definition as a DAG."""
        return ComputeDAG.of(self.tensors())

    @cached_property
    def dag_flops(self) -> float:
        """Arithmetic operations of the definition, independent of the algorithm."""
        return flops(self.dag)

    @cached_property
    def bytes(self) -> int:
        """Bytes of all arguments, read once, and of the output, written once."""
        return sum(op.bytes for op in (*self.dag.args, *self.dag.outputs))

    def values(self, seed: int) -> dict[str, Array]:
        """A value for each placeholder in our layout; the same in every process."""
        return {op.name: input_array(op, seed) for op in self.dag.args}

    def peer_values(self, seed: int) -> dict[str, Array]:
        """:meth:`values` in the peers' layouts."""
        layouts = self.layouts()
        return {
            name: layouts[name].to_peer(array) if name in layouts else array
            for name, array in self.values(seed).items()
        }

    def from_peer(self, array: Array) -> Array:
        """Convert a peer's output to our layout."""
        layout, shape = self.layouts().get("out"), self.dag.outputs[0].shape
        return array.reshape(shape) if layout is None else layout.from_peer(array, shape)

    def onnx_models(self, seed: int) -> list[onnx.ModelProto]:
        """Each of :meth:`onnx_graphs` as a model, with our constants as initializers."""
        return [self._model(graph, self.peer_values(seed)) for graph in self.onnx_graphs()]

    def _model(self, graph: OnnxGraph, values: Mapping[str, Array]) -> onnx.ModelProto:
        fixed = dict(graph.constants or {})
        fixed.update({op.name: values[op.name] for op in self.dag.args if op.constant})
        inputs = [
            _value_info(op.name, values[op.name].shape) for op in self.dag.args if not op.constant
        ]
        output = self.dag.outputs[0].shape
        layout = self.layouts().get("out")
        made = _value_info("out", output if layout is None else layout.shape(output))
        initializers = [numpy_helper.from_array(array, name) for name, array in fixed.items()]
        whole = helper.make_graph(list(graph.nodes), "case", inputs, [made], initializers)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(whole, opset_imports=opset, ir_version=IR_VERSION)


def _value_info(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
