"""Views: the shapes that a kernel uses for its tensors.

Memory is row-major, so the same bytes can be read as ``[n, h, w, c]``, as ``[pixels, c]`` or as
``[pixels, blocks, c / blocks]``.  Fewer axes make a smaller search space.  Splitting the channel
axis into blocks keeps the boundaries of groups and parts out of the innermost loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

from ansorpy.graph.fusion import Group
from ansorpy.graph.ir import needed
from ansorpy.graph.ops import Concat, Conv, MatMul, Pattern, Shape
from ansorpy.graph.placement import Placement
from ansorpy.ir.extents import multiple_of, prod_of

__all__ = ["View", "of_second_operand", "view_of"]

_MIN_BLOCK = 8
"""The smallest block of channels that gets its own axis: half an AVX-512 vector of float32."""


@dataclass(frozen=True)
class View:
    """The shapes that one kernel uses for its tensors.

    ``collapse`` merges all axes but the last into one; ``flat`` merges all axes; ``block`` splits
    the last axis into blocks of that many elements.  Leading unit axes of constants are dropped.
    """

    collapse: bool = False
    flat: bool = False
    block: int | None = None

    def shape(self, shape: Shape, full: Shape) -> Shape:
        """The view's shape of an operand of *shape* that broadcasts to *full*."""
        if self.flat:
            return (prod_of(shape),)
        lead, last = shape[:-1], shape[-1:]
        if self.collapse:
            lead = (prod_of(lead),) if lead == full[:-1] else (1,) * min(len(lead), 1)
        return (*lead, *self._split(last)) if last else shape

    def _split(self, last: Shape) -> Shape:
        if self.block is None:
            return last
        return (1, 1) if last == (1,) else (last[0] // self.block, self.block)


def view_of(placement: Placement, group: Group) -> View:
    """The view that *group*'s kernel uses."""
    found = _view_of_all(placement, group)
    if all(node.inputs for node in group.nodes):
        return found  # what has no operands is defined for one shape
    return View() if group.anchor is None else replace(found, collapse=False)


def _view_of_all(placement: Placement, group: Group) -> View:
    """The view of *group* if all of its nodes have operands."""
    graph = placement.graph
    if group.anchor is None:
        return _injective_view(placement, group)
    op = group.anchor.op
    if isinstance(op, MatMul):
        return View(collapse=_is_product_of_rows(placement, group))
    if not isinstance(op, Conv):
        return View()
    rank = len(op.strides)
    weight = graph.types[group.anchor.inputs[1]].shape
    tail = weight[rank:]
    block = tail[-1] if len(tail) == 3 else None
    others = [node for node in group.nodes if node is not group.anchor]
    full = graph.types[group.anchor.output].shape
    collapse = (
        len(tail) > 1
        and op.is_pointwise(weight[:rank])
        and all(node.op.pattern is Pattern.ELEMENTWISE for node in others)
        and (block is None or group.nodes[0] is group.anchor)
        and _collapses(full, (graph.types[i].shape for n in others for i in n.inputs))
        and _merges(placement, group)
    )
    return View(collapse=collapse, block=block)


def _is_product_of_rows(placement: Placement, group: Group) -> bool:
    """True when all leading axes are rows that are multiplied by the same matrix."""
    assert group.anchor is not None
    types, (data, weight) = placement.graph.types, group.anchor.inputs
    full = types[group.anchor.output].shape
    apart = {*of_second_operand(group), group.anchor.output}
    others = [node for node in group.nodes if node.output not in apart]
    return (
        len(types[data].shape) > 2 == len(types[weight].shape)
        and all(node.op.pattern is Pattern.ELEMENTWISE for node in others)
        and _collapses(full, (types[i].shape for n in others for i in n.inputs))
        and _merges(placement, group)
    )


def of_second_operand(group: Group) -> frozenset[str]:
    """The values of *group* that only the second operand of its product is made of."""
    if group.anchor is None or not isinstance(group.anchor.op, MatMul):
        return frozenset()
    first, second = group.anchor.inputs
    made = _made_for(group, second)
    return frozenset() if made & _made_for(group, first) else made


def _made_for(group: Group, value: str) -> frozenset[str]:
    """The values of *group* that *value* is made of."""
    nodes, _ = needed(group.nodes, [value])
    return frozenset(node.output for node in nodes)


def _injective_view(placement: Placement, group: Group) -> View:
    graph = placement.graph
    full = graph.types[group.output].shape
    rank = len(full)
    concats = [n.op for n in group.nodes if isinstance(n.op, Concat)]
    others = [n for n in group.nodes if n.op.pattern is not Pattern.ELEMENTWISE]
    if len(others) != len(concats) or any(c.axis != rank - 1 for c in concats) or not rank:
        return View()
    shapes = [graph.types[i].shape for n in group.nodes for i in n.inputs]
    is_dense = all(map(placement.is_dense, _passed(placement, group)))
    if is_dense and not concats and all(prod_of(s) in (1, prod_of(full)) for s in shapes):
        return View(flat=True)
    if not _collapses(full, shapes) or not _merges(placement, group):
        return View()
    parts = [
        graph.types[i].shape for n in group.nodes if isinstance(n.op, Concat) for i in n.inputs
    ]
    return View(collapse=True, block=_block(shapes, parts) if concats else None)


def _passed(placement: Placement, group: Group) -> Iterator[str]:
    """The values that *group*'s kernel reads or writes, except constants."""
    made, constants = {node.output for node in group.nodes}, placement.graph.constants
    for node in group.nodes:
        yield from (i for i in node.inputs if i not in made and i not in constants)
    yield group.output


def _merges(placement: Placement, group: Group) -> bool:
    """True when the leading axes of every value passed can be merged, given its strides."""
    for value in _passed(placement, group):
        shape = placement.graph.types[value].shape
        lead, last = shape[:-1], shape[-1:]
        if shape and placement.strides(value, (prod_of(lead), *last)) is None:
            return False
    return True


def _collapses(full: Shape, shapes: Iterable[Shape]) -> bool:
    """True when every operand has all leading axes of *full*, or none of them."""
    return all(
        prod_of(s[:-1]) == 1 or s[:-1] == full[:-1] for s in shapes
    )  # fmt: skip


def _block(shapes: Sequence[Shape], parts: Sequence[Shape]) -> int | None:
    """The largest block that divides the channels of all *parts* and *shapes*; None if too small.

    Shapes whose channels are broadcast do not count.
    """
    block = gcd(
        *(multiple_of(s[-1]) for s in parts),
        *(multiple_of(s[-1]) for s in shapes if s and s[-1] != 1),
    )
    return block if block >= _MIN_BLOCK else None
