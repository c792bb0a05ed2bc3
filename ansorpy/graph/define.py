"""The compute definition of a group of fused nodes: its DAG and each placeholder's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ansorpy.graph.fusion import Group
from ansorpy.graph.ir import Array, Graph, Node
from ansorpy.graph.ops import (
    Concat,
    Conv,
    Elementwise,
    Fn,
    MatMul,
    Movement,
    Op,
    Shape,
    Shuffle,
)
from ansorpy.graph.ops.matmul import grouped_matmul, matmul
from ansorpy.graph.ops.movement import Moved
from ansorpy.graph.ops.names import Names
from ansorpy.graph.placement import Placement
from ansorpy.graph.view import View, of_second_operand, view_of
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Const, const
from ansorpy.ir.extents import prod_of
from ansorpy.ir.strides import Strides
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute, placeholder

__all__ = ["GroupDefinition", "copy_definition", "define"]


@dataclass(frozen=True)
class GroupDefinition:
    """A DAG whose ``args`` are ``inputs`` (value names), then ``constants`` (by placeholder)."""

    dag: ComputeDAG
    inputs: tuple[str, ...]
    constants: dict[str, Array]


@dataclass
class _Scope:
    """Placeholders and stages made so far for one group."""

    placement: Placement
    view: View = View()
    names: Names = field(default_factory=Names)
    stages: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[tuple[str, Shape], PlaceholderOp] = field(default_factory=dict)
    weights: dict[tuple[str, Shape], PlaceholderOp] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return self.placement.graph

    def tensor(self, value: str, shape: Shape, role: str) -> Tensor:
        """The stage or placeholder for *value*; a placeholder has the given *shape*."""
        if value in self.stages:
            return self.stages[value]
        constant = value in self.graph.constants
        held = self.weights if constant else self.inputs
        if (value, shape) not in held:
            dtype = self.graph.types[value].dtype
            held[value, shape] = placeholder(
                shape, dtype, name=self.names.fresh(role), constant=constant
            )
        return held[value, shape]

    def shape(self, value: str) -> Shape:
        return self.graph.types[value].shape


def define(placement: Placement, group: Group) -> GroupDefinition:
    """The compute definition of *group*; equal groups get structurally equal DAGs."""
    view, apart = view_of(placement, group), of_second_operand(group)
    scope = _Scope(placement)
    is_viewed = group.anchor is None or view.collapse  # else an anchor reads what is stored
    for node in group.nodes:
        is_viewed = is_viewed or node is group.anchor
        scope.view = view if is_viewed and node.output not in apart else View()
        made = _moved if _reads_through(group, node) else _stage
        scope.stages[node.output] = made(scope, node)
    args = [*scope.inputs.values(), *scope.weights.values()]
    result = scope.stages[group.output]
    strides = {p.name: _strides(placement, v, shape) for (v, shape), p in scope.inputs.items()}
    strides[result.name] = _strides(placement, group.output, result.shape)
    dag = ComputeDAG([result], args, strides)
    constants = {
        p.name: placement.graph.constant(value, shape)
        for (value, shape), p in scope.weights.items()
    }
    return GroupDefinition(dag, tuple(value for value, _ in scope.inputs), constants)


def _strides(placement: Placement, value: str, shape: Shape) -> Strides:
    strides = placement.strides(value, shape)
    assert strides is not None, f"{value} has no strides for the shape {shape}"
    return strides


def _reads_through(group: Group, node: Node) -> bool:
    """True for a movement that its reader performs as an index map, without a stage.

    A shuffle needs quotients and remainders, and breaks up vectors.  It therefore gets its own
    stage, unless a padding stage does this once for all taps.
    """
    if not isinstance(node.op, Movement) or node.output == group.output:
        return False
    anchor = None if group.anchor is None else group.anchor.op
    return not isinstance(node.op, Shuffle) or (isinstance(anchor, Conv) and anchor.is_padded)


def _moved(scope: _Scope, node: Node) -> Tensor:
    (value,) = node.inputs
    assert isinstance(node.op, Movement)
    return Moved(node.op, scope.tensor(value, scope.shape(value), "data"))


def copy_definition(placement: Placement, value: str) -> GroupDefinition:
    """A kernel that copies *value* to a network output that is stored elsewhere."""
    kind = placement.graph.types[value]
    shape = (kind.size,) if placement.is_dense(value) else kind.shape
    is_constant = value in placement.graph.constants
    source = placeholder(shape, kind.dtype, name="data", constant=is_constant)
    copied = compute(shape, lambda *i: source[i], name="copy")
    strides = {} if is_constant else {source.name: _strides(placement, value, shape)}
    dag = ComputeDAG([copied], [source], strides)
    if is_constant:
        return GroupDefinition(dag, (), {source.name: placement.graph.constant(value, shape)})
    return GroupDefinition(dag, (value,), {})


def _stage(scope: _Scope, node: Node) -> ComputeOp:
    match node.op:
        case Conv() | MatMul() if scope.view.collapse:
            return _pointwise(scope, node)
        case Op(roles=roles) if roles:
            operands = [
                scope.tensor(value, scope.shape(value), role)
                for value, role in zip_longest(node.inputs, roles, fillvalue="mask")
            ]
            return node.op.define(operands, scope.names)
        case Concat() if scope.view != View():
            op: Op = Concat(-1 if scope.view.block is None else -2)
        case _:
            op = node.op
    full = scope.shape(node.output)
    return op.define(_operands(scope, node, full), scope.names)


def _pointwise(scope: _Scope, node: Node) -> ComputeOp:
    """A pointwise convolution or a product of rows, as one matrix product over all pixels."""
    data, weight = node.inputs
    *lead, channels = scope.shape(data)
    pixels = prod_of(lead)
    taps = len(node.op.strides) if isinstance(node.op, Conv) else 0
    tail = scope.shape(weight)[taps:]
    x = scope.tensor(data, (pixels, channels), "data")
    w = scope.tensor(weight, tail, "weight")
    if len(tail) == 2:
        return matmul([x, w], scope.names)
    return grouped_matmul(x, w, scope.names)


def _operands(scope: _Scope, node: Node, full: Shape) -> Sequence[Tensor | Const]:
    """Operands in the shapes of the view; in arithmetic, constants of size one become literals.

    Constants keep their axes unless a computed operand has all axes of the result.
    """
    result: list[Tensor | Const] = []
    computed = [value for value in node.inputs if value not in scope.graph.constants]
    has_axes = any(len(scope.shape(value)) == len(full) for value in computed)
    arithmetic = isinstance(node.op, Elementwise) and has_axes
    for value in node.inputs:
        array = scope.graph.constants.get(value)
        if arithmetic and array is not None and array.size == 1:
            result.append(const(array.item(), scope.graph.types[value].dtype))
            continue
        shape = scope.view.shape(scope.shape(value), full)
        if arithmetic and array is not None:
            shape = _stripped(shape)
        result.append(scope.tensor(value, shape, _role(node, array)))
    return result


def _stripped(shape: Shape) -> Shape:
    """*shape* without leading unit axes, which broadcasting restores."""
    first = next((d for d, e in enumerate(shape) if e != 1), len(shape) - 1)
    return shape[first:]


def _role(node: Node, array: Array | None) -> str:
    """A descriptive name for a placeholder."""
    if array is None:
        return "data"
    names = {Fn.ADD: "bias", Fn.MUL: "scale", Fn.PRELU: "slope"}
    return names.get(node.op.fn, "constant") if isinstance(node.op, Elementwise) else "constant"
