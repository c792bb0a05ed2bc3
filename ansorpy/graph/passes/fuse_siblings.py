"""Join products of the same data into one product, whose result is sliced.

    conv(x, w1) + b1, conv(x, w2) + b2   -->   y = conv(x, w1|w2) + b1|b2;  y[.., :n1], y[.., n1:]

The data are read once, and small products use more of the machine.  The slices are views (see
:mod:`ansorpy.graph.placement`), so all widths but the last must be whole cache lines.  A product
stays separate if the view would cost something: if its result is an output, goes into a
concatenation (where it is written in place), or is followed by arithmetic that the others do not
have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node
from ansorpy.graph.ops import (
    Cast,
    Concat,
    Conv,
    Elementwise,
    MatMul,
    Op,
    Pattern,
    Reshape,
    Shape,
    Slice,
)
from ansorpy.graph.uses import Uses
from ansorpy.ir.strides import ALIGNMENT_BYTES, dense_strides, reshaped

__all__ = ["fuse_siblings"]


def fuse_siblings(graph: Graph) -> Graph:
    """*graph*, whose images are channels last, with products of the same operand joined."""
    return _Joiner(graph).run()


@dataclass(frozen=True)
class _Step:
    """An elementwise node after a product, and its constant operands by position."""

    node: Node
    constants: Mapping[int, str]

    @property
    def kind(self) -> tuple[Op, tuple[int, ...]]:
        return self.node.op, tuple(self.constants)


@dataclass(frozen=True)
class _Sibling:
    """A product and the arithmetic with constants after it."""

    node: Node
    steps: tuple[_Step, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.node, *(step.node for step in self.steps))

    @property
    def value(self) -> str:
        """The value after the last step."""
        return self.nodes[-1].output


class _Joiner:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)
        self.order = {node.output: place for place, node in enumerate(graph.nodes)}
        self.builder = GraphBuilder.like(graph)
        self.joined: dict[tuple[object, ...], str] = {}
        """Constants of families, by the names of their parts."""

    def run(self) -> Graph:
        families = {
            min((s.node.output for s in family), key=self.order.__getitem__): family
            for family in self._families()
        }
        joined = {n.output for family in families.values() for s in family for n in s.nodes}
        for node in self.graph.nodes:
            if node.output in families:
                self._join(families[node.output])
            elif node.output not in joined:
                self.builder.add_node(node)
        return self.builder.finish(self.graph.outputs)

    def _families(self) -> Iterator[list[_Sibling]]:
        """The groups of products to join, each in the order of their results in memory."""
        alike: dict[object, list[_Sibling]] = {}
        for node in self.graph.nodes:
            if self._is_product(node):
                steps = tuple(self._steps(node))
                taps, kinds = self._shape(node.inputs[1])[:-1], tuple(step.kind for step in steps)
                if self._may_be_cut(steps[-1].node.output if steps else node.output):
                    dtype = self.graph.types[node.inputs[1]].dtype
                    key = (node.op, node.inputs[0], dtype, taps, kinds)
                    alike.setdefault(key, []).append(_Sibling(node, steps))
        for siblings in alike.values():
            found = self._aligned(siblings)
            if len(found) > 1 and self._are_cuts_expressible(found):
                yield found

    def _is_product(self, node: Node) -> bool:
        if not isinstance(node.op, Conv | MatMul) or node.inputs[1] not in self.graph.constants:
            return False
        if isinstance(node.op, Conv):
            return node.op.groups == 1
        return len(self._shape(node.inputs[1])) == 2

    def _steps(self, node: Node) -> Iterator[_Step]:
        """The chain of elementwise nodes after *node* whose other operands are constants."""
        value = node.output
        width = self._shape(value)[-1]
        while (reader := self.uses.only_reader(value)) is not None:
            constants = {n: i for n, i in enumerate(reader.inputs) if i != value}
            if not isinstance(reader.op, Elementwise | Cast) or not all(
                i in self.graph.constants and _is_row(self._shape(i), width)
                for i in constants.values()
            ):
                return
            yield _Step(reader, constants)
            value = reader.output

    def _may_be_cut(self, value: str) -> bool:
        """True when every reader can read part of a larger tensor as cheaply as a whole one."""
        readers = self.uses.readers[value]
        alone = len(readers) == 1 and readers[0].op.pattern is Pattern.ELEMENTWISE
        joins = any(isinstance(reader.op, Concat) for reader in readers)
        return value not in self.uses.results and not alone and not joins

    def _aligned(self, siblings: list[_Sibling]) -> list[_Sibling]:
        """*siblings* in an order in which all but the last are whole cache lines wide.

        Leaves out siblings for which there is no place.
        """
        whole: list[_Sibling] = []
        odd: list[_Sibling] = []
        for sibling in siblings:
            kind = self.graph.types[sibling.value]
            is_whole = kind.shape[-1] * kind.dtype.bytes % ALIGNMENT_BYTES == 0
            (whole if is_whole else odd).append(sibling)
        return [*whole, *odd[:1]] if whole else []

    def _are_cuts_expressible(self, siblings: list[_Sibling]) -> bool:
        total = sum(self._shape(s.node.output)[-1] for s in siblings)
        for value in (sibling.value for sibling in siblings):
            shape = self._shape(value)
            strides = dense_strides((*shape[:-1], total))
            for reader in self.uses.readers[value]:
                if isinstance(reader.op, Reshape) and not reshaped(shape, strides, reader.op.shape):
                    return False
        return True

    def _join(self, family: list[_Sibling]) -> None:
        first = family[0].node
        parts = [s.node.inputs[1] for s in family]
        widths = [self.graph.constants[part].shape[-1] for part in parts]
        weight = self._together(parts, lambda arrays: np.concatenate(arrays, -1))
        value = self.builder.emit(first.op, (first.inputs[0], weight), f"{first.output}.all")
        for n, step in enumerate(family[0].steps):
            inputs = [value] * len(step.node.inputs)
            for place in step.constants:
                parts = [s.steps[n].constants[place] for s in family]
                inputs[place] = self._together(parts, lambda arrays: _row(arrays, widths), *widths)
            value = self.builder.emit(step.node.op, inputs, f"{step.node.output}.all")
        *lead, _ = self.builder.types[value].shape
        start = 0
        for sibling, width in zip(family, widths, strict=True):
            cut = Slice((0,) * len(lead) + (start,), (*lead, width), (1,) * (len(lead) + 1))
            self.builder.add_node(Node(cut, (value,), sibling.value))
            start += width

    def _together(
        self, parts: Sequence[str], join: Callable[[list[Array]], Array], *how: int
    ) -> str:
        """The constants *parts* as one, which other families with the same ones share."""
        key = (*parts, *how)
        if key not in self.joined:
            joined = join([self.graph.constants[part] for part in parts])
            self.joined[key] = self.builder.add_constant(f"{parts[0]}.all", joined)
        return self.joined[key]

    def _shape(self, value: str) -> Shape:
        return self.graph.types[value].shape


def _is_row(shape: Shape, width: int) -> bool:
    """True for a single value, or one per element of the last dimension of *width*."""
    return all(extent == 1 for extent in shape[:-1]) and (not shape or shape[-1] in (1, width))


def _row(parts: Sequence[Array], widths: Sequence[int]) -> Array:
    """The constants of all products concatenated, or one if all are the same number."""
    first = parts[0]
    if all(part.size == 1 and part.item() == first.item() for part in parts):
        return first
    rows = [np.broadcast_to(p.reshape(-1), (w,)) for p, w in zip(parts, widths, strict=True)]
    return np.concatenate(rows)
