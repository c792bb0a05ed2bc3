"""A graph that torch captured: segments that are compiled, and operators that torch runs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from operator import getitem
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node, map_arg
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.proxy import GraphAppendingTracer, Proxy
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from ansorpy.errors import AnsorpyError, UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.frontend.torch.operators.movement import VIEWS
from ansorpy.frontend.torch.sizes import Untranslatable
from ansorpy.frontend.torch.table import name_of
from ansorpy.frontend.torch.translate import is_operator, is_size, refusal, translate
from ansorpy.frontend.torch.writer import source_of
from ansorpy.runtime.ports import MAX_RANK
from ansorpy.torch_backend.segment import Segment

__all__ = ["CapturedGraph"]

_LOG = logging.getLogger(__name__)
_PREFIX = "segment_"
_aten = torch.ops.aten
_BY_STRIDES = (
    _aten.as_strided.default, _aten.as_strided_copy.default, _aten.as_strided_scatter.default,
)  # fmt: skip


class CapturedGraph:
    """A captured graph; called with its arguments, it returns its results.

    Args:
        module: The graph, of ATen operators on fake tensors.
        constants: Numbers of the arguments that are parameters or buffers.
        arguments: As of :func:`ansorpy.compile`.
    """

    def __init__(
        self, module: GraphModule, constants: Collection[int], arguments: Mapping[str, Any]
    ) -> None:
        self.eager: dict[str, str] = {}
        """The operators that torch runs itself, and why."""
        self.segments: list[Segment] = []
        """What is compiled, in the order of the calls."""
        self._refused: dict[str, str] = {}
        module.graph.eliminate_dead_code()
        self._cut(module, constants, arguments)
        if self.eager:
            said = ", ".join(f"{name} ({why})" for name, why in self.eager.items())
            _LOG.warning("torch runs these operators itself: %s", said)

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)

    def __repr__(self) -> str:
        return f"<CapturedGraph: {len(self.segments)} segments, torch runs {[*self.eager]}>"

    def _cut(
        self, module: GraphModule, constants: Collection[int], arguments: Mapping[str, Any]
    ) -> None:
        """Cut *module*, and again while the importer refuses operators of a segment."""
        while True:
            found = _fused(module, self._refused)
            segments = [node for node in found.graph.nodes if node.op == "call_module"]
            problems: dict[str, str] = {}
            for number, node in enumerate(segments):
                part = found.get_submodule(node.target)
                held = _held(found.graph, node, constants)
                problems |= self._replace(found, node, part, number, held, arguments)
            if not problems:
                break
            self._refused |= problems
            self.segments = []
        found.recompile()
        self._run = found.forward  # without the hooks that a call of a module looks for
        for node in module.graph.nodes:
            why = self._refused.get(node.name) or _refusal(node)
            if not _is_free(node) and why is not None:
                self.eager.setdefault(_called(node), why)

    def _replace(
        self, module: GraphModule, node: Node, part: GraphModule, number: int,
        held: Collection[int], arguments: Mapping[str, Any],
    ) -> dict[str, str]:  # fmt: skip
        """Put a :class:`Segment` in place of *part*; returns the operators that prevent it."""
        try:
            translated = translate(part.graph, f"{_PREFIX}{number}")
        except Untranslatable as error:
            return {error.node: str(error)}
        segment = Segment(translated, part, held, arguments)
        try:
            load(translated.model, dims=segment.dims)
        except AnsorpyError as error:
            if problems := _blamed(error, part, segment.constant_names):
                return problems
        module.set_submodule(node.target, segment)
        self.segments.append(segment)
        return {}


def _blamed(error: AnsorpyError, part: GraphModule, held: Collection[str]) -> dict[str, str]:
    """Which operators of *part* are left to torch for *error*: all, if it names none of them.

    There are none if it is enough that the inputs *held* are constant.
    """
    inside = {one.name: error.message for one in part.graph.nodes if one.op == "call_function"}
    if not isinstance(error, UnsupportedModel):
        return inside
    rows = [row for row in error.rows if not row.needs or not set(row.needs) <= {*held}]
    if error.rows and not rows:
        return {}
    found = {source_of(row.node): f"{row.attribute}: {row.advice}" for row in rows}
    return {name: why for name, why in found.items() if name in inside} or inside


class _Supported(OperatorSupportBase):
    """Which nodes may be in a segment."""

    def __init__(self, refused: Collection[str]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        if node.op != "call_function" or is_size(node) or node.name in self._refused:
            return False
        return _refusal(node) is None


def _refusal(node: Node) -> str | None:
    """As :func:`refusal`, which need not know what the interface of compiled code allows."""
    values = node.meta.get("val")
    for value in values if isinstance(values, tuple | list) else [values]:
        if isinstance(value, torch.Tensor) and value.dim() > MAX_RANK:
            return f"{value.dim()} dimensions, more than {MAX_RANK}"
    return refusal(node)


def _called(node: Node) -> str:
    """The operator of *node*; one with side effects is an operand of another."""
    return name_of(node.args[1] if str(node.target) == "with_effects" else node.target)


def _is_free(node: Node) -> bool:
    """Whether *node* computes no elements, so that it matters little who runs it."""
    return not is_operator(node) or name_of(node.target) in VIEWS


def _fused(module: GraphModule, refused: Collection[str]) -> GraphModule:
    """A copy of *module*, whose segments are submodules."""
    graph = _copy(module.graph)
    _size_by_inputs(graph)
    views = _share_memory(graph)
    own = {*refused, *views, *_keep_strides(graph)}
    copied = GraphModule(module, graph)
    partitioner = CapabilityBasedPartitioner(
        copied, _Supported(own), allows_single_node_partition=True
    )
    parts = [part for part in partitioner.propose_partitions()
             if not all(map(_is_free, part.nodes))]  # fmt: skip
    fused = partitioner.fuse_partitions(parts, prefix=_PREFIX)
    for node in fused.graph.nodes:
        if node.target is _aten.view.default:  # results of segments may have other strides
            node.target = _aten.reshape.default
    return fused


def _copy(graph: Graph) -> Graph:
    made = Graph()
    known: dict[Node, Node] = {}
    returned = made.graph_copy(graph, known)
    made.output(returned)
    return made


def _size_by_inputs(graph: Graph) -> None:
    """Compute the sizes of results from the sizes that *graph* gets.

    Read from a result, they would end the segment that computes it: torch reads them.
    """
    given = {
        node.meta["val"].node.expr: Proxy(node, GraphAppendingTracer(graph))
        for node in graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt)
    }
    nodes = [*graph.nodes]
    for node in nodes:
        size = node.meta.get("val")
        if node.target is not _aten.sym_size.int or not isinstance(size, torch.SymInt):
            continue
        if node.args[0].op == "placeholder" or not size.node.expr.free_symbols <= given.keys():
            continue
        with graph.inserting_before(node):
            found = sympy_interp(PythonReferenceAnalysis, given, size.node.expr)
        node.replace_all_uses_with(found.node)
        graph.erase_node(node)
        for made in {*graph.nodes}.difference(nodes):
            made.meta.setdefault("val", size)  # a number, which Python computes


def _share_memory(graph: Graph) -> set[str]:
    """Make each view that *graph* returns at its end, from the tensor it shows; return their names.

    Torch makes views without copying, so they share memory as its own results do.
    """
    output = graph.output_node()
    made: dict[Node, Node] = {}

    def viewing(node: Node) -> Node:
        if node not in made and _is_view(node):
            for operand in node.all_input_nodes:
                viewing(operand)
            with graph.inserting_before(output):
                made[node] = graph.node_copy(node, lambda one: made.get(one, one))
        return made.get(node, node)

    output.args = map_arg(output.args, viewing)
    graph.eliminate_dead_code()
    return {node.name for node in made.values()}


def _keep_strides(graph: Graph) -> set[str]:
    """Have torch make the memory that it will read by strides; return the names of these nodes.

    The strides are those of torch's own results, which may be transposed, and the results of
    segments are contiguous.
    """
    names: set[str] = set()
    for node in [*graph.nodes]:
        if node.target not in _BY_STRIDES:
            continue
        reader, base = node, node.args[0]
        while _is_view(base):
            names.add(base.name)
            reader, base = base, base.args[0]
        if base.op != "placeholder":
            order = _order_of(base.meta["val"])
            with graph.inserting_before(reader):
                turned = graph.call_function(_aten.permute.default, (base, order))
                plain = graph.call_function(_aten.contiguous.default, (turned,))
                back = [order.index(axis) for axis in range(len(order))]
                laid_out = graph.call_function(_aten.permute.default, (plain, back))
            reader.replace_input_with(base, laid_out)
            names |= {turned.name, plain.name, laid_out.name}
    return names


def _order_of(tensor: torch.Tensor) -> list[int]:
    """The axes of *tensor* in the order in which its memory has them, the innermost last."""
    strides = [stride.node.hint if isinstance(stride, torch.SymInt) else stride
               for stride in tensor.stride()]  # fmt: skip
    return sorted(range(tensor.dim()), key=lambda axis: -(strides[axis] or 0))


def _is_view(node: Node) -> bool:
    if node.op != "call_function":
        return False
    name = name_of((node.args[0] if node.target is getitem else node).target)
    return name in VIEWS and name != "clone.default"


def _held(graph: Graph, node: Node, constants: Collection[int]) -> frozenset[int]:
    """Which arguments of the segment *node* keep their values, until someone changes them."""
    placeholders = [one for one in graph.nodes if one.op == "placeholder"]
    fixed = {one for number, one in enumerate(placeholders) if number in constants}
    return frozenset(
        number for number, one in enumerate(node.args) if one in fixed or one.op == "get_attr"
    )
